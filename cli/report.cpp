#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/critical.h"
#include "scheduler/bounds.h"
#include "scheduler/period.h"
#include "visualize/window.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

double share(const std::optional<Rational>& exact, double otherwise) { return exact ? exact->to_double() : otherwise; }

std::string size_text(Rational value) {
  return value.whole() ? std::to_string(value.numerator()) : in_units(value.to_double(), 4);
}

double gap_of(const Report& report, const LowerBound& bound) {
  return share(gap(report.makespan, bound.makespan),
               bound.makespan == 0 ? 0 : static_cast<double>(report.makespan) / static_cast<double>(bound.makespan) - 1);
}

/// Devices whose lines are printed; JSON has them all.
constexpr std::size_t kMostLines = 64;

/// The sizes of a model are bytes.
std::string exact_text(const Built& built, Rational size) {
  return built.schedule->costs.state.empty() ? size_text(size) : bytes_text(size.to_double());
}

}  // namespace

double bubble_of(const Report& report) {
  double busy = 0;
  for (const DeviceReport& device : report.devices) busy += static_cast<double>(device.busy);
  const double room = static_cast<double>(report.makespan) * static_cast<double>(report.devices.size());
  return share(report.bubble, room > 0 ? 1 - busy / room : 0);
}

double span_bubble_of(const Report& report) {
  Ticks busy = 0;
  for (const DeviceReport& device : report.devices) busy = std::max(busy, device.busy);
  return share(report.span_bubble,
               report.span > 0 ? 1 - static_cast<double>(busy) / static_cast<double>(report.span) : 0);
}

std::string unit_text(const Built& built) { return built.timeline->unit.empty() ? "" : " " + built.timeline->unit; }

std::string number_text(double value) { return in_units(value, 4); }

std::string time_text(const Built& built, Ticks time) {
  return number_text(static_cast<double>(time) / static_cast<double>(built.timeline->ticks_per_unit)) + unit_text(built);
}

Json number_json(Rational value) {
  if (value.whole()) return value.numerator();
  return value.to_double();
}

Json time_json(const Report& report, Ticks time) {
  if (time % report.ticks_per_unit == 0) return time / report.ticks_per_unit;
  return static_cast<double>(time) / static_cast<double>(report.ticks_per_unit);
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string result;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += fmt::format("{}{:>{}}", c == 0 ? "" : "  ", row[c], widths[c]);
    result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return result;
}

std::string summary_of(const Built& built) {
  const Report& report = *built.report;
  std::string result = fmt::format("makespan {}, ", time_text(built, report.makespan));
  if (report.span != report.makespan) result += fmt::format("longest span {}, ", time_text(built, report.span));
  result += fmt::format("bubble {:.1f} % (of makespan times devices)", 100 * bubble_of(report));
  std::string peaks;
  std::size_t listed = 0;
  for (const DeviceReport& device : report.devices) {
    if (++listed > 16) {
      peaks += " ...";
      break;
    }
    peaks += fmt::format(" {}", device.peak_activations);
  }
  return result + fmt::format(", peak activations{}", peaks);
}

std::string report_text(const Built& built) {
  const Report& report = *built.report;
  std::string result;
  const auto line = [&](const char* name, const std::string& value, const char* meaning) {
    result += fmt::format("{:<12} {:>12}   {}\n", name, value, meaning);
  };
  line("makespan", time_text(built, report.makespan), "end of the last op on any device");
  line("span", time_text(built, report.span), "the longest of a device, from its own first op to its own last");
  if (report.iteration != report.makespan)
    line("iteration", time_text(built, report.iteration), "the makespan with the optional ops counted");
  line("bubble", fmt::format("{:.2f} %", 100 * bubble_of(report)), "1 - sum of busy / (makespan * devices)");
  line("span bubble", fmt::format("{:.2f} %", 100 * span_bubble_of(report)), "1 - greatest busy / span");
  if (report.utilisation)
    line("utilisation", fmt::format("{:.2f} %", 100 * *report.utilisation),
         "operations of F, I and W / (makespan * peak of the devices)");
  line("messages", fmt::format("{}", report.messages), "between two devices");
  const LowerBound bound = lower_bound(*built.schedule, *built.table, *built.costs);
  line("bound", time_text(built, bound.makespan),
       bound.makespan_by == BoundBy::Strong ? "no order of these ops is shorter, as they are placed and limited"
                                            : "the same, by the closed form: there are too many ops for the strong one");
  line("gap", fmt::format("{:.2f} %", 100 * gap_of(report, bound)),
       report.makespan == bound.makespan ? "makespan / bound - 1: this order is proved to be the shortest"
                                         : "makespan / bound - 1");
  // That of lanes and messages that contend for nothing.
  if (const std::optional<Rational> each =
          built.contends ? std::nullopt : period(*built.schedule, *built.table, *built.costs))
    line("period", number_text(each->to_double() / static_cast<double>(report.ticks_per_unit)) + unit_text(built),
         "an iteration of many, without a barrier between them");

  // A cause that no device has makes no column.
  std::vector<IdleCause> causes;
  for (const auto& [cause, name, words] : kIdleCauses)
    if (std::ranges::any_of(report.devices,
                            [at = static_cast<std::size_t>(cause)](const DeviceReport& d) { return d.idle[at] != 0; }))
      causes.push_back(cause);
  std::vector<std::vector<std::string>> rows = {{"device", "busy", "first", "last", "idle"}};
  for (IdleCause cause : causes) rows[0].emplace_back(info(cause).name);
  rows[0].emplace_back("peak activations");
  if (report.peak_memory) rows[0].emplace_back("peak memory");
  const auto time = [&](Ticks ticks) {
    return in_units(static_cast<double>(ticks) / static_cast<double>(report.ticks_per_unit), 4);
  };
  for (std::uint32_t d = 0; d < std::min(report.devices.size(), kMostLines); ++d) {
    const DeviceReport& device = report.devices[DeviceId(d)];
    rows.push_back({std::to_string(d), time(device.busy), time(device.first), time(device.last),
                    time(report.makespan - device.busy)});
    for (IdleCause cause : causes) rows.back().push_back(time(device.idle[static_cast<std::size_t>(cause)]));
    rows.back().push_back(std::to_string(device.peak_activations));
    if (report.peak_memory) rows.back().push_back(exact_text(built, (*report.peak_memory)[DeviceId(d)].size));
  }
  result += "\n" + aligned(rows);
  if (report.devices.size() > kMostLines)
    result += fmt::format("{} more devices; --json has them all\n", report.devices.size() - kMostLines);
  return result + critical_text(built);
}

Json report_json(const Built& built) {
  const Report& report = *built.report;
  Json result = {{"schedule", built.schedule->name}};
  if (built.schedule->expansion) {
    Json parameters = Json::object();
    for (const NamedText& each : parameters_of(*built.schedule)) parameters[each.name] = each.value;
    result["parameters"] = parameters;
  }
  if (!built.timeline->unit.empty()) result["unit"] = built.timeline->unit;
  result["ticks_per_unit"] = report.ticks_per_unit;
  result["makespan"] = time_json(report, report.makespan);
  result["span"] = time_json(report, report.span);
  result["iteration"] = time_json(report, report.iteration);
  result["bubble"] = bubble_of(report);
  result["span_bubble"] = span_bubble_of(report);
  if (report.utilisation) result["utilisation"] = *report.utilisation;
  const LowerBound bound = lower_bound(*built.schedule, *built.table, *built.costs);
  result["bound"] = time_json(report, bound.makespan);
  result["bound_by"] = name_of(bound.makespan_by);
  result["gap"] = gap_of(report, bound);
  result["span_bound"] = time_json(report, bound.span);
  result["span_bound_by"] = name_of(bound.span_by);
  if (const std::optional<Rational> each =
          built.contends ? std::nullopt : period(*built.schedule, *built.table, *built.costs))
    if (const std::optional<Rational> exact = divide(*each, Rational(report.ticks_per_unit)))
      result["period"] = number_json(*exact);
  result["messages"] = report.messages;
  result["critical_path"] = critical_json(built);
  result["devices"] = Json::array();
  for (std::uint32_t d = 0; d < report.devices.size(); ++d) {
    const DeviceReport& device = report.devices[DeviceId(d)];
    Json idle = Json::object();
    for (const IdleCauseInfo& each : kIdleCauses)
      idle[std::string(each.name)] = time_json(report, device.idle[static_cast<std::size_t>(each.cause)]);
    Json entry = {{"device", d},
                  {"busy", time_json(report, device.busy)},
                  {"first", time_json(report, device.first)},
                  {"last", time_json(report, device.last)},
                  {"idle", idle},
                  {"peak_activations", device.peak_activations}};
    if (report.peak_memory) entry["peak_memory"] = number_json((*report.peak_memory)[DeviceId(d)].size);
    result["devices"].push_back(std::move(entry));
  }
  return result;
}

}  // namespace stave
