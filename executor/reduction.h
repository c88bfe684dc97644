// Reduction: how the gradients of a stage's replicas become their sum, and where the threads of their devices meet for
// it. When that is due is said by the plan: at the ops G of a table, or before the update that ends a step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/ticks.h"
#include "executor/plan.h"
#include "executor/stage/stage.h"
#include "executor/team.h"

namespace stave {

/// The gradients of all replicas become their sum, added in the order given. Nobody else may touch them meanwhile.
void reduce_gradients(std::span<Stage* const> replicas);

/// The tied gradients of a group of stages become their sum, in all replicas, which must be alike. All are here.
void reduce_tied(const Partition& model, Workload& workload, std::span<const StageId> group);

/// The replicas of a stage, in the order of Partition::devices.
std::vector<Stage*> replicas_of(const Partition& model, Workload& workload, StageId s);

/// Meetings of the ops G that run as one: all start when the last of them may, and end together.
class Reductions {
 public:
  explicit Reductions(const Plan& plan) : plan_(plan) {}

  /// Once a step, before any thread comes to a meeting.
  void begin_step();

  struct Times {
    Ticks start = 0;
    Ticks end = 0;
  };
  /// Comes to the meeting of the op at `position`, ready at `times.start`; the last to come calls `reduce` with the
  /// latest start of all, which returns when it began and ended. Gives every one these times. False if the run was
  /// stopped.
  bool meet(const Team& team, std::uint32_t position, Times& times, const std::function<Times(Ticks)>& reduce);
  /// After a stop: lets no thread wait any longer.
  void wake();

 private:
  struct Meeting {
    std::size_t here = 0;
    bool ended = false;
    Times times;
  };
  const Plan& plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Meeting> meetings_;
};

}  // namespace stave
