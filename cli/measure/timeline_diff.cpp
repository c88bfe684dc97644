#include "cli/measure/timeline_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "scheduler/costs.h"

namespace stave {
namespace {

/// What one unit of a timeline is in that of another; 0 if there is no telling.
double scale(const std::string& from, const std::string& to) {
  if (from == to) return 1;
  const std::int64_t from_ns = ns_of_unit(from);
  const std::int64_t to_ns = ns_of_unit(to);
  return from_ns > 0 && to_ns > 0 ? static_cast<double>(from_ns) / static_cast<double>(to_ns) : 0;
}

std::string unit_text(const std::string& unit) { return unit.empty() ? "slots" : unit; }

Ticks first_start(const RecordedTimeline& timeline) {
  Ticks result = std::numeric_limits<Ticks>::max();
  for (const RecordedOp& op : timeline.ops) result = std::min(result, op.start);
  return timeline.ops.empty() ? 0 : result;
}

Ticks last_end(const RecordedTimeline& timeline) {
  Ticks result = first_start(timeline);
  for (const RecordedOp& op : timeline.ops)
    if (!op.optional) result = std::max(result, op.end);
  return result;
}

/// For every op of `first` the index of the same op in `second`.
Result<std::vector<std::uint32_t>> match(const RecordedTimeline& first, const RecordedTimeline& second) {
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> places;
  for (std::uint32_t i = 0; i < second.ops.size(); ++i) places[{second.ops[i].device, second.ops[i].op}] = i;
  std::vector<std::uint32_t> result;
  for (const RecordedOp& op : first.ops) {
    const auto at = places.find({op.device, op.op});
    if (at == places.end())
      return Failure{fmt::format("{} on device {} is in the first timeline only: they are of two schedules", op.op,
                                 op.device)};
    result.push_back(at->second);
    places.erase(at);
  }
  if (!places.empty())
    return Failure{fmt::format("{} on device {} is in the second timeline only: they are of two schedules",
                               places.begin()->first.second, places.begin()->first.first)};
  return result;
}

/// Lengths by a key that sorts as it is shown.
using Lengths = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>>;

}  // namespace

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Waits> waits_of(const RecordedTimeline& timeline) {
  // The message that every op waits for longest.
  std::vector<const RecordedMessage*> last(timeline.ops.size(), nullptr);
  for (const RecordedMessage& message : timeline.messages) {
    const RecordedMessage*& known = last[message.consumer];
    if (known == nullptr || message.end > known->end) known = &message;
  }
  std::vector<std::vector<std::uint32_t>> lanes(timeline.devices);
  for (std::uint32_t i = 0; i < timeline.ops.size(); ++i)
    if (timeline.ops[i].stream.empty()) lanes[timeline.ops[i].device].push_back(i);
  std::vector<Waits> result(timeline.devices);
  const Ticks zero = first_start(timeline);
  for (std::uint32_t d = 0; d < timeline.devices; ++d) {
    std::stable_sort(lanes[d].begin(), lanes[d].end(),
                     [&](std::uint32_t a, std::uint32_t b) { return timeline.ops[a].start < timeline.ops[b].start; });
    Ticks at = zero;
    for (std::uint32_t i : lanes[d]) {
      const RecordedOp& op = timeline.ops[i];
      const RecordedMessage* const message = last[i];
      // From `at` to a time, as far as the gap goes.
      const auto until = [&](Ticks time) {
        const Ticks end = std::clamp(time, at, std::max(at, op.start));
        return static_cast<double>(end - std::exchange(at, end));
      };
      if (message != nullptr) {
        result[d].late_compute += until(message->posted);
        result[d].queue += until(message->start);
        result[d].transfer += until(message->end);
      }
      result[d].other += until(op.start);
      at = std::max(at, op.end);
    }
  }
  return result;
}

Result<TimelineDiff> compare_timelines(const RecordedTimeline& first, const RecordedTimeline& second) {
  const double to_first = scale(second.unit, first.unit);
  if (to_first == 0)
    return Failure{fmt::format("the first timeline is in {}, the second in {}: there is no telling one by the other",
                               unit_text(first.unit), unit_text(second.unit))};
  if (first.devices != second.devices)
    return Failure{fmt::format("the first timeline has {} devices, the second {}", first.devices, second.devices)};
  const Result<std::vector<std::uint32_t>> matched = match(first, second);
  if (!matched) return matched.failure();
  const std::vector<std::uint32_t>& same = matched.value();
  const double per_tick[2] = {1 / static_cast<double>(first.ticks_per_unit),
                              to_first / static_cast<double>(second.ticks_per_unit)};
  const Ticks zero[2] = {first_start(first), first_start(second)};
  TimelineDiff result;
  result.unit = first.unit;
  result.same_order = std::is_sorted(same.begin(), same.end());
  result.same_program = first.program == second.program;
  const auto span = [&](int which, const auto& each) { return static_cast<double>(each.end - each.start) * per_tick[which]; };
  const auto start = [&](int which, const RecordedOp& op) {
    return static_cast<double>(op.start - zero[which]) * per_tick[which];
  };
  result.makespan = {static_cast<double>(last_end(first) - zero[0]) * per_tick[0],
                     static_cast<double>(last_end(second) - zero[1]) * per_tick[1]};

  std::vector<std::string> kinds;
  const auto number = [](std::vector<std::string>& names, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) return static_cast<std::uint32_t>(at - names.begin());
    names.push_back(name);
    return static_cast<std::uint32_t>(names.size() - 1);
  };
  const auto write = [](const std::vector<std::string>& names, Lengths (&lengths)[2]) {
    std::vector<TimelineDiff::Length> rows;
    for (auto& [key, values] : lengths[0]) {
      std::vector<double>& others = lengths[1][key];
      const auto count = static_cast<std::uint32_t>(values.size());
      rows.push_back({names[key.first], key.second, count, {median(values), median(others)}});
    }
    return rows;
  };
  Lengths lengths[2];
  result.devices.resize(first.devices);
  std::vector<std::vector<double>> skews(first.devices);
  std::vector<std::uint8_t> begun(first.devices, false);
  for (std::uint32_t i = 0; i < first.ops.size(); ++i) {
    const RecordedOp& a = first.ops[i];
    const RecordedOp& b = second.ops[same[i]];
    const std::pair key{number(kinds, a.kind), a.stage};
    lengths[0][key].push_back(span(0, a));
    lengths[1][key].push_back(span(1, b));
    TimelineDiff::Device& device = result.devices[a.device];
    const Both starts{start(0, a), start(1, b)};
    if (!std::exchange(begun[a.device], true)) {
      device.first = starts;
      device.most_skew = starts.second - starts.first;
    }
    device.first = {std::min(device.first.first, starts.first), std::min(device.first.second, starts.second)};
    device.most_skew = std::max(device.most_skew, starts.second - starts.first);
    skews[a.device].push_back(starts.second - starts.first);
  }
  result.lengths = write(kinds, lengths);
  std::vector<std::string> payloads;
  Lengths transfers[2];
  for (int which : {0, 1})
    for (const RecordedMessage& message : (which == 0 ? first : second).messages)
      transfers[which][{number(payloads, message.carries), RecordedOp::kNone}].push_back(span(which, message));
  result.messages = write(payloads, transfers);
  for (int which : {0, 1}) {
    const std::vector<Waits> waits = waits_of(which == 0 ? first : second);
    for (std::uint32_t d = 0; d < first.devices; ++d) {
      Waits each = waits[d];
      for (double* part : {&each.late_compute, &each.queue, &each.transfer, &each.other}) *part *= per_tick[which];
      result.devices[d].waits[which] = each;
    }
  }
  for (std::uint32_t d = 0; d < first.devices; ++d) result.devices[d].skew = median(skews[d]);
  return result;
}

}  // namespace stave
