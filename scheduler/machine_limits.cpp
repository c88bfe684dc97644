// ModelPrices::verify: what a machine forbids once there is an order: messages without a path, and memory beyond capacity.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "scheduler/alive.h"
#include "scheduler/model_prices.h"
#include "scheduler/toml.h"

namespace stave {

namespace {

/// "microbatches 0 to 3, 5".
std::string list_text(const std::vector<std::uint32_t>& numbers) {
  std::string result;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!result.empty()) result += ", ";
    result += end - i > 1 ? fmt::format("{} to {}", numbers[i], numbers[end - 1]) : fmt::format("{}", numbers[i]);
    i = end;
  }
  return fmt::format("microbatch{} {}", numbers.size() == 1 ? "" : "es", result);
}

std::string alive_text(const Alive& alive, const Schedule& schedule) {
  std::string result =
      fmt::format("weights {}, gradients and optimizer {}", bytes_text(alive.weights), bytes_text(alive.state));
  for (const auto& [stage, microbatches] : alive.activations) {
    std::vector<std::uint32_t> held;
    for (const auto& [m, size] : microbatches)
      if (size > 0.5) held.push_back(m);
    if (held.empty()) continue;
    result += fmt::format(", activations of stage {} {} ({})", stage, bytes_text(alive.activations_of(stage)),
                          list_text(held));
  }
  for (const Alive::Slots& each : alive.slots)
    result += fmt::format(", slots of messages ({}) {}, {} each", schedule.payloads[each.payload],
                          bytes_text(each.count * each.size), bytes_text(each.size));
  if (alive.versions > 0.5) result += fmt::format(", other versions of weights {}", bytes_text(alive.versions));
  return result;
}

}  // namespace

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

bool ModelPrices::verify(const Schedule& schedule, const Program& program, const Timeline& timeline,
                         const IdVector<DeviceId, PeakMemory>& peaks, Diagnostics& sink) const {
  return verify_paths(program, sink) && verify_memory(schedule, program, timeline, peaks, sink);
}

bool ModelPrices::verify_paths(const Program& program, Diagnostics& sink) const {
  for (const Edge& edge : program.edges) {
    const std::uint32_t from = accelerator(edge.source.value);
    const std::uint32_t to = accelerator(edge.target.value);
    if (cluster_->link(from, to) != Cluster::kNone) continue;
    refuse(sink, "no-path", cluster_->span,
           fmt::format("device {} sends to device {}, and there is no link between {} and {}", edge.source.value,
                       edge.target.value, cluster_->place(from), cluster_->place(to)));
    return false;
  }
  return true;
}

bool ModelPrices::verify_memory(const Schedule& schedule, const Program& program, const Timeline& timeline,
                                const IdVector<DeviceId, PeakMemory>& peaks, Diagnostics& sink) const {
  std::uint32_t worst = 0;
  double most = 0;
  std::uint32_t beyond = 0;
  for (std::uint32_t d = 0; d < peaks.size(); ++d) {
    const double over = peaks[DeviceId(d)].size.to_double() - smallest(d).memory_bytes;
    if (over <= 0) continue;
    ++beyond;
    if (over <= most) continue;
    most = over;
    worst = d;
  }
  if (beyond == 0) return true;
  const PeakMemory& peak = peaks[DeviceId(worst)];
  const Accelerator& on = smallest(worst);
  std::vector<std::string> notes = {
      fmt::format("it peaks {}: {}",
                  peak.position == OpId::kNone
                      ? std::string("all the time")
                      : fmt::format("when `{}` starts", program.table.ops.text(program.table.entries[peak.position])),
                  alive_text(alive_at(peak, DeviceId(worst), schedule, program, timeline), schedule))};
  if (beyond > 1)
    notes.push_back(fmt::format("{} more device{} must hold more than {} memory", beyond - 1, beyond == 2 ? "" : "s",
                                beyond == 2 ? "its" : "their"));
  refuse(sink, "memory-capacity", on.memory_span,
         fmt::format("device {} must hold {}, and `{}` has {}: {} short", worst, bytes_text(peak.size.to_double()), on.name,
                     bytes_text(on.memory_bytes), bytes_text(most)),
         "", std::move(notes));
  return false;
}

}  // namespace stave
