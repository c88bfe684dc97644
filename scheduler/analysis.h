// Analysis: the figures of a schedule, from its program and a timeline, simulated or measured.
// Why a device idles is idle.h, what it holds memory.h; how figures are printed is the command line's.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/expect.h"
#include "compiler/rational.h"
#include "compiler/schedule.h"
#include "core/ids.h"
#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/bounds.h"
#include "scheduler/costs.h"
#include "scheduler/idle.h"
#include "scheduler/memory.h"

namespace stave {

struct DeviceReport {
  /// Sum of its ops' lengths.
  Ticks busy = 0;
  /// Start of its first op and end of its last.
  Ticks first = 0;
  Ticks last = 0;
  Idle idle = {};
  /// (stage, microbatch, slice) triples held at once.
  std::uint32_t peak_activations = 0;

  Ticks span() const { return last - first; }
};

/// Optional ops count in `iteration` and `count` alone.
struct Report {
  Ticks ticks_per_unit = 1;
  /// End of the last op, on any device.
  Ticks makespan = 0;
  /// The longest of any device, from its own first op to its own last.
  Ticks span = 0;
  /// The makespan with the optional ops.
  Ticks iteration = 0;
  /// 1 less the sum of `busy` over makespan times devices; 0 if nothing takes time. None if it does not fit a Rational.
  std::optional<Rational> bubble;
  /// 1 less the greatest `busy` over `span`: the zero-bubble papers' rate.
  std::optional<Rational> span_bubble;
  /// See utilisation.h; none where no model says what an op does.
  std::optional<double> utilisation;
  std::uint32_t messages = 0;
  IdVector<DeviceId, DeviceReport> devices;
  /// None if the sizes are beyond exact arithmetic.
  std::optional<IdVector<DeviceId, PeakMemory>> peak_memory;
  /// Most updates of each stage between the weights a microbatch read and the update that uses its gradient.
  std::vector<std::uint32_t> staleness;
  /// Entries of each kind.
  IdVector<KindId, std::uint32_t> count;
};

/// `timeline` must be complete. If there is no peak memory, `sink`, if there is one, says why. Cost: O(nodes + waits).
Report analyse(const Schedule& schedule, const Program& program, const Timeline& timeline,
               Diagnostics* sink = nullptr);

/// What figures that take more than one pass are made from.
struct MadeFrom {
  const Schedule& schedule;
  const Table& table;
  const Costs& costs;
};

/// Makespan over bound, less 1; 0 where both are 0. None if it does not fit a Rational.
std::optional<Rational> gap(Ticks makespan, Ticks bound);

/// The figures as `expect` asks for them: times in the unit of the costs. Those of later analyses are not known; bound,
/// gap and period are made when first asked for, and only where there is something to make them from.
class ReportMetrics : public Metrics {
 public:
  explicit ReportMetrics(const Report& report, std::optional<MadeFrom> priced = std::nullopt)
      : report_(report), priced_(priced) {}
  std::optional<Rational> value(const MetricQuery& query) const override;

 private:
  std::optional<Rational> time(Ticks ticks) const { return Rational::make(ticks, report_.ticks_per_unit); }
  std::optional<Rational> later(Metric metric) const;

  const Report& report_;
  const std::optional<MadeFrom> priced_;
  mutable std::optional<LowerBound> bound_;
  mutable std::optional<std::optional<Rational>> period_;
};

}  // namespace stave
