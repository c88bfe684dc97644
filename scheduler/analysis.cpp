#include "scheduler/analysis.h"

#include <algorithm>

namespace stave {

namespace {

/// 1 less part / whole; 0 if there is no whole.
std::optional<Rational> less_than_whole(Int128 part, Int128 whole) {
  return whole == 0 ? Rational(0) : Rational::make(whole - part, whole);
}

}  // namespace

Report analyse(const Schedule& schedule, const Program& program, const Timeline& timeline, Diagnostics* sink) {
  const Table& table = program.table;
  Report report;
  report.ticks_per_unit = timeline.ticks_per_unit;
  report.messages = static_cast<std::uint32_t>(program.messages.size());
  report.count.assign(table.ops.kinds().size(), 0);
  Int128 all_busy = 0;
  Ticks most_busy = 0;
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    DeviceReport device;
    bool started = false;
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const KindId kind = table.ops.kind_of(table.entries[position]);
      ++report.count[kind];
      report.iteration = std::max(report.iteration, timeline.end[position]);
      if (table.ops.kinds()[kind].optional) continue;
      if (!started) device.first = timeline.start[position];
      started = true;
      device.last = timeline.end[position];
      device.busy += timeline.end[position] - timeline.start[position];
    }
    device.peak_activations = program.slots[DeviceId(d)].stash;
    report.makespan = std::max(report.makespan, device.last);
    report.span = std::max(report.span, device.span());
    most_busy = std::max(most_busy, device.busy);
    all_busy += device.busy;
    report.devices.push_back(device);
  }
  report.bubble = less_than_whole(all_busy, Int128(report.makespan) * table.devices());
  report.span_bubble = less_than_whole(most_busy, report.span);
  const IdVector<DeviceId, Idle> idle = attribute_idle(program, timeline, report.makespan);
  for (std::uint32_t d = 0; d < table.devices(); ++d) report.devices[DeviceId(d)].idle = idle[DeviceId(d)];
  report.peak_memory = peak_memory(schedule, table, sink);
  return report;
}

std::optional<Rational> ReportMetrics::value(const MetricQuery& query) const {
  const auto device = [&]() -> const DeviceReport& { return report_.devices[DeviceId(*query.first)]; };
  switch (query.metric) {
    case Metric::Makespan:
      return time(report_.makespan);
    case Metric::Bubble:
      return report_.bubble;
    case Metric::Span:
      return time(query.first ? device().span() : report_.span);
    case Metric::SpanBubble:
      return report_.span_bubble;
    case Metric::Iteration:
      return time(report_.iteration);
    case Metric::Busy:
      return time(device().busy);
    case Metric::Idle:
      if (!query.cause) return time(report_.makespan - device().busy);
      if (std::find(kKnownCauses.begin(), kKnownCauses.end(), *query.cause) == kKnownCauses.end()) return std::nullopt;
      return time(device().idle[static_cast<std::size_t>(*query.cause)]);
    case Metric::PeakActivations:
      return Rational(device().peak_activations);
    case Metric::PeakMemory:
      if (!report_.peak_memory) return std::nullopt;
      return (*report_.peak_memory)[DeviceId(*query.first)].size;
    case Metric::Messages:
      return Rational(report_.messages);
    case Metric::Count:
      return Rational(report_.count[query.kind]);
    case Metric::Period:
    case Metric::Bytes:
    case Metric::Bound:
    case Metric::Gap:
    case Metric::Staleness:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace stave
