// The `expect` lines of a schedule, tried on what it comes to under the costs in force.
// The figures are the scheduler's: they are asked for through Metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/metrics.h"
#include "compiler/rational.h"
#include "compiler/schedule.h"

namespace stave {

/// One figure that an `expect` asks for.
struct MetricQuery {
  Metric metric = Metric::Makespan;
  /// The device or the stage, and the second device of `bytes`; none where the metric was asked for without (`span`).
  std::optional<std::uint32_t> first;
  std::optional<std::uint32_t> second;
  /// Of `idle(d, cause)`.
  std::optional<IdleCause> cause;
  /// Of `count(F)`.
  KindId kind;
};

class Metrics {
 public:
  virtual ~Metrics() = default;
  /// The exact figure, times in the unit of the costs; none if this version, or this price, does not know it. The
  /// devices and stages of a query exist.
  virtual std::optional<Rational> value(const MetricQuery& query) const = 0;
};

enum class ExpectOutcome : std::uint8_t {
  Holds,
  Fails,
  /// Its `if` does not hold, or there is nothing in its list.
  DoesNotApply,
  /// It asks for a figure that is not known, or for one cost where there are several: the note says which.
  Skipped,
  /// It has no value; said in the sink.
  Error,
};

struct ExpectResult {
  ExpectOutcome outcome = ExpectOutcome::Holds;
  /// The line.
  Span span;
  /// Of a skipped one.
  std::string note;
  /// Of one that fails: both sides, and the first index that breaks it. Its kind is "false-expect".
  std::optional<Diagnostic> failure;
};

/// Shape: one result for each `expect`, in the order of the text. Values are exact: `==` means equal. Only errors go to
/// `sink`; what becomes of a false line is the caller's choice. Cost: an evaluation for each element of a `for`.
std::vector<ExpectResult> try_expects(const Schedule& schedule, const Metrics& metrics, Diagnostics& sink);

/// The closed form of the makespan: what the first `expect makespan == e` says it is, alone or joined to others by `and`,
/// whose `if` holds under `costs`; whether it is true is not asked. None if no line applies or has a value.
std::optional<Rational> claimed_makespan(const Schedule& schedule, const CostSet& costs, const Metrics& metrics);

}  // namespace stave
