#include "scheduler/analysis.h"

#include <algorithm>

#include "compiler/weights.h"
#include "core/lanes.h"
#include "scheduler/period.h"
#include "scheduler/utilisation.h"

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
  const Lanes lanes(table);
  const std::vector<std::uint32_t> block_of = blocks_of(table);
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
      device.first = started ? std::min(device.first, timeline.start[position]) : timeline.start[position];
      started = true;
      device.last = std::max(device.last, timeline.end[position]);
      // The two of a pair are one stretch of computing; what runs on a stream is none.
      const bool pairs = !block_of.empty() && position > table.first[d] && block_of[position] != UINT32_MAX &&
                         block_of[position] == block_of[position - 1];
      if (lanes.computes(position) && !pairs) device.busy += timeline.end[position] - timeline.start[position];
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
  report.utilisation = model_utilisation(schedule, table, report.makespan, report.ticks_per_unit);
  const IdVector<DeviceId, Idle> idle = attribute_idle(schedule, program, timeline, report.makespan);
  for (std::uint32_t d = 0; d < table.devices(); ++d) report.devices[DeviceId(d)].idle = idle[DeviceId(d)];
  report.staleness =
      staleness(schedule, table, {program.makes_version, program.reads_version, std::vector<bool>()});
  report.peak_memory = peak_memory(schedule, program, timeline, sink);
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
    case Metric::Staleness:
      return Rational(report_.staleness[*query.first]);
    case Metric::Period:
    case Metric::Bound:
    case Metric::Gap:
      return later(query.metric);
    case Metric::Bytes:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Rational> ReportMetrics::later(Metric metric) const {
  if (!priced_) return std::nullopt;
  if (metric == Metric::Period) {
    if (!period_) period_ = period(priced_->schedule, priced_->table, priced_->costs);
    return *period_ ? divide(**period_, Rational(report_.ticks_per_unit)) : std::nullopt;
  }
  if (!bound_) bound_ = lower_bound(priced_->schedule, priced_->table, priced_->costs);
  return metric == Metric::Bound ? time(bound_->makespan) : gap(report_.makespan, bound_->makespan);
}

std::optional<Rational> gap(Ticks makespan, Ticks bound) {
  return bound == 0 ? std::optional(Rational(0)) : Rational::make(Int128(makespan) - bound, bound);
}

}  // namespace stave
