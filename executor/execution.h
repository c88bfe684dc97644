// Execution: what all threads of a run share, and how one node is run and timed. Which node is next is the walker's.
#pragma once

#include <memory>
#include <semaphore>
#include <vector>

#include "core/timeline.h"
#include "executor/device.h"
#include "executor/plan.h"
#include "executor/reduction.h"
#include "executor/run.h"
#include "executor/team.h"

namespace stave {

class Execution {
 public:
  /// All must outlive it. `devices` has one for every device of the program.
  Execution(const Program& program, const Plan& plan, const RunOptions& options, Workload& workload,
            std::vector<std::unique_ptr<Device>>& devices);

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }

  /// Once a step, before any thread goes on.
  void begin_step(std::uint64_t step);
  /// Times of the step under way or just ended.
  Timeline& timeline() { return timeline_; }

  /// Runs the op at `position`, and the one it is paired with, at `ready` or later, both since the start of the step,
  /// and notes their times. False if the run was stopped or has failed, in which case `team` knows.
  bool compute(Team& team, std::uint32_t position, Ticks ready);
  /// Carries a message that may start at `ready`, and notes its times. Does not wait for its end.
  bool carry(Team& team, NodeId message, Ticks ready);

  Ticks start(NodeId n) const { return timeline_.start[n.value]; }
  Ticks end(NodeId n) const { return timeline_.end[n.value]; }
  /// Latest end of what `node` waits for, a message's producer among it.
  Ticks latest_end(NodeId node) const;
  Ticks cost(NodeId n) const { return options_.cost_ns.empty() ? 0 : options_.cost_ns[n.value]; }
  Ticks setup(std::uint32_t position) const { return options_.setup_ns.empty() ? 0 : options_.setup_ns[position]; }
  Clock clock() const { return options_.clock; }
  /// After a stop: lets no thread wait for others of a reduction.
  void wake() { reductions_.wake(); }
  /// Waits for a time of the step on the wall clock; nothing on the virtual one. False if the run was stopped.
  bool wait_until(const Team& team, Ticks time) const;

 private:
  bool run_op(Team& team, std::uint32_t position);
  bool reduce(Team& team, std::uint32_t position, Ticks ready);

  const Program& program_;
  const Plan& plan_;
  const RunOptions& options_;
  Workload& workload_;
  std::vector<std::unique_ptr<Device>>& devices_;
  Timeline timeline_;
  Reductions reductions_;
  std::uint64_t step_ = 0;
  Ticks origin_ = 0;
  // On the virtual clock no more ops compute at once than there are cores, so that they do not push one another out of
  // caches: an op's CPU time is then nearly what it would be alone.
  std::counting_semaphore<> cores_;
};

}  // namespace stave
