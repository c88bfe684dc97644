// Execution: what all threads of a run share, and how one node is run and timed. Which node is next is the walker's.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "core/timeline.h"
#include "executor/cores.h"
#include "executor/device.h"
#include "executor/plan.h"
#include "executor/reduction.h"
#include "executor/ranks/remote.h"
#include "executor/run.h"
#include "executor/team.h"

namespace stave {

class Execution {
 public:
  /// All must outlive it. `devices` has one for every device of the program, null for those of other processes, which
  /// `remote` reaches; it is null if there are none.
  Execution(const Program& program, const Plan& plan, const RunOptions& options, Workload& workload,
            std::vector<std::unique_ptr<Device>>& devices, Remote* remote);

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }
  bool is_here(DeviceId d) const { return devices_[d.value] != nullptr; }
  /// Whether a node is run in this process, a message in part at least.
  bool takes_part(NodeId n) const;
  /// Whether a message begins or ends in another process.
  bool is_remote(NodeId message) const;

  /// Once a step, before any thread goes on. `origin` is its time 0, as now_ns() counts.
  void begin_step(std::uint64_t step, Ticks origin);
  /// Times of the step under way or just ended.
  Timeline& timeline() { return timeline_; }

  /// Runs the op at `position`, and the one it is paired with, at `ready` or later, both since the start of the step,
  /// and notes their times. False if the run was stopped or has failed, in which case `team` knows.
  bool compute(Team& team, std::uint32_t position, Ticks ready);
  /// Carries a message that may start at `ready`, and notes its times. Does not wait for its end.
  bool carry(Team& team, NodeId message, Ticks ready);
  /// The half of a remote message that is here: returns when it has left, or is here.
  bool carry_half(Team& team, NodeId message, Ticks ready);
  /// Sums the gradients of a stage at the end of a step, in every process that has a replica of it.
  bool reduce_at_end(Team& team, StageId s);
  /// Sums the tied gradients of groups of stages, once those of their replicas are summed. By one thread of every process.
  void reduce_tied_at_end(Team& team, std::span<const std::vector<StageId>> groups);

  Ticks start(NodeId n) const { return timeline_.start[n.value]; }
  Ticks end(NodeId n) const { return timeline_.end[n.value]; }
  /// Which node that is, and in which step: "F(1, 3) on device 1, step 4". From any thread.
  std::string text(NodeId n) const;
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
  // Replicas of the stage here, then those elsewhere. `ready` becomes the latest of all.
  std::string sum_replicas(StageId s, Ticks& ready);
  bool fail(Team& team, NodeId node, const std::string& error);

  const Program& program_;
  const Plan& plan_;
  const RunOptions& options_;
  Workload& workload_;
  std::vector<std::unique_ptr<Device>>& devices_;
  Remote* remote_;
  Timeline timeline_;
  Reductions reductions_;
  // By position, as profilers show it.
  std::vector<std::string> names_;
  std::atomic<std::uint64_t> step_ = 0;
  Ticks origin_ = 0;
  // On the virtual clock no more ops compute at once than there are cores, so that they do not push one another out of
  // caches: an op's CPU time is then nearly what it would be alone.
  Cores cores_;
};

}  // namespace stave
