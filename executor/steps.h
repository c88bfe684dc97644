// Steps: what every run does around its steps, on CPUs and on GPUs: the checkpoint it begins with and those it writes, one
// time 0 for all ranks, what they tell each other, the report, and who may end it from outside. What happens in a step,
// and on which threads, is the run's own.
#pragma once

#include <cstdint>

#include "core/program.h"
#include "core/result.h"
#include "core/timeline.h"
#include "executor/measure.h"
#include "executor/plan.h"
#include "executor/run.h"
#include "executor/stage/stage.h"
#include "executor/team.h"

namespace stave {

class Steps {
 public:
  /// All must outlive it.
  Steps(const Program& program, const Plan& plan, Workload& workload, const RunOptions& options, Team& team);

  /// Reads the checkpoint into the stages, if the run goes on from one. Errors: those of read_checkpoint(); one that has
  /// done all steps.
  Result<void> resume();
  /// The first step that is due.
  std::uint64_t first() const { return report_.resumed_at; }
  /// Whether `step` still is, once the one before has ended.
  bool is_due(std::uint64_t step) const { return step < options_.steps && !ends_; }

  /// While the team runs: ends it when the run is interrupted, or another rank has failed. Where checkpoints are written
  /// an interrupt waits for the end of the step, of which all ranks learn.
  void watch();

  // Of the team one at a time, while all others wait; what fails ends the team.

  /// Waits for all ranks, and begins a step.
  void begin();
  /// Time 0 of the step under way, as now_ns() counts.
  Ticks origin() const { return origin_; }
  /// About how long a step takes by the wall clock: the longest so far, of the first a guess.
  Ticks predicted_ns() const { return longest_; }
  /// Ends a step. `timeline` has the times of what ran here, since the step's origin, or is null if none were taken, on
  /// all ranks alike: the makespan is then the greatest of all ranks' `makespan_ns`.
  void finish(std::uint64_t step, Timeline* timeline, Ticks makespan_ns, double gradient_norm);

  /// After the run.
  RunReport report();

 private:
  int caught_signal() const { return options_.interrupt ? options_.interrupt() : 0; }

  const Program& program_;
  const Plan& plan_;
  Workload& workload_;
  const RunOptions& options_;
  Team& team_;
  Measured measured_;
  bool has_times_ = false;
  RunReport report_;
  Ticks began_ = 0;
  Ticks origin_ = 0;
  Ticks longest_;
  // The last step was the last one, by an interrupt.
  bool ends_ = false;
};

}  // namespace stave
