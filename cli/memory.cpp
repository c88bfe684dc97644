#include "cli/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/report.h"
#include "scheduler/alive.h"
#include "scheduler/memory.h"
#include "scheduler/model_prices.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

/// Devices whose lines are printed; JSON has them all.
constexpr std::size_t kMostLines = 64;
constexpr std::size_t kColumns = 60;
constexpr std::array<const char*, 9> kBars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

Alive alive_on(const Built& built, std::uint32_t device) {
  return alive_at((*built.report->peak_memory)[DeviceId(device)], DeviceId(device), *built.schedule, *built.program,
                  *built.timeline);
}

/// "F(2, 3)", when what starts makes the peak.
std::string peak_at(const Built& built, std::uint32_t device) {
  const std::uint32_t position = (*built.report->peak_memory)[DeviceId(device)].position;
  return position == OpId::kNone ? "start" : built.table->ops.text(built.table->entries[position]);
}

std::vector<MemoryStep> steps_of(const Built& built, std::uint32_t device) {
  return memory_over_time(*built.schedule, *built.program, *built.timeline, DeviceId(device));
}

/// The most that is held in each of the columns into which the makespan is cut, in eighths of `full`.
std::string bars(const std::vector<MemoryStep>& steps, Ticks makespan, double full) {
  std::vector<double> most(kColumns, 0);
  const auto at = [&](Ticks time) { return static_cast<double>(time) / static_cast<double>(makespan) * double(kColumns); };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double end = i + 1 < steps.size() ? at(steps[i + 1].time) : double(kColumns);
    for (auto c = static_cast<std::size_t>(at(steps[i].time)); c < kColumns && static_cast<double>(c) < end; ++c)
      most[c] = std::max(most[c], steps[i].held);
  }
  std::string result;
  for (const double each : most) {
    const double eighths = full > 0 ? 8 * each / full : 0;
    result += kBars[std::min<std::size_t>(8, static_cast<std::size_t>(eighths + 0.999))];
  }
  return result;
}

}  // namespace

std::string size_text(const Built& built, double size) {
  return built.schedule->costs.state.empty() ? number_text(size) : bytes_text(size);
}

std::string memory_text(const Built& built) {
  std::vector<std::vector<std::string>> rows = {{"device", "peak", "when starts", "weights", "gradients, optimizer", "activations",
                                                 "slots of messages", "more versions"}};
  double full = 0;
  const std::uint32_t devices = built.table->devices();
  for (std::uint32_t d = 0; d < devices; ++d) full = std::max(full, (*built.report->peak_memory)[DeviceId(d)].size.to_double());
  std::string chart;
  for (std::uint32_t d = 0; d < std::min<std::size_t>(devices, kMostLines); ++d) {
    const Alive alive = alive_on(built, d);
    rows.push_back({std::to_string(d), size_text(built, (*built.report->peak_memory)[DeviceId(d)].size.to_double()),
                    peak_at(built, d), size_text(built, alive.weights), size_text(built, alive.state),
                    size_text(built, alive.all_activations()), size_text(built, alive.all_slots()),
                    size_text(built, alive.versions)});
    chart += fmt::format("{:>6} |{}|\n", d, bars(steps_of(built, d), std::max<Ticks>(1, built.report->iteration), full));
  }
  std::string result = "\n" + aligned(rows) +
                       fmt::format("\nmemory over time, a column {}, a full one {}\n",
                                   number_text(static_cast<double>(built.report->iteration) / double(kColumns) /
                                               static_cast<double>(built.report->ticks_per_unit)) +
                                       unit_text(built),
                                   size_text(built, full)) +
                       chart;
  if (devices > kMostLines) result += fmt::format("{} more devices; --json has them all\n", devices - kMostLines);
  return result;
}

void add_memory(nlohmann::ordered_json& report, const Built& built) {
  for (std::uint32_t d = 0; d < built.table->devices(); ++d) {
    const Alive alive = alive_on(built, d);
    Json memory = {{"peak", number_json((*built.report->peak_memory)[DeviceId(d)].size)}, {"when_starts", peak_at(built, d)},
                   {"weights", alive.weights}, {"state", alive.state}, {"versions", alive.versions}};
    Json stages = Json::array();
    for (const auto& [stage, microbatches] : alive.activations)
      stages.push_back({{"stage", stage}, {"size", alive.activations_of(stage)}});
    memory["activations"] = std::move(stages);
    Json slots = Json::array();
    for (const Alive::Slots& each : alive.slots)
      slots.push_back({{"message", built.schedule->payloads[each.payload]}, {"count", each.count}, {"size", each.size}});
    memory["slots"] = std::move(slots);
    Json over = Json::array();
    for (const MemoryStep& step : steps_of(built, d)) over.push_back({time_json(*built.report, step.time), step.held});
    memory["over_time"] = std::move(over);
    report["devices"][d]["memory"] = std::move(memory);
  }
}

}  // namespace stave
