// StepEnd: what ends a step once all ops of the table have run: sums over replicas and over tied stages, the norm of the
// gradients and their clipping, the update. Where a table has reductions and updates of its own, those are not done again.
#pragma once

#include <memory>
#include <vector>

#include "executor/device.h"
#include "executor/execution.h"
#include "executor/plan.h"
#include "executor/run.h"
#include "executor/team.h"

namespace stave {

class StepEnd {
 public:
  /// All must outlive it.
  StepEnd(const Plan& plan, Workload& workload, const RunOptions& options, Execution& execution,
          std::vector<std::unique_ptr<Device>>& devices);

  /// Errors: gradients are to be clipped, or those of tied stages to be added, but some are used before all are there.
  /// `workload` must be configured.
  static Result<void> check(const Plan& plan, const Workload& workload, const RunOptions& options);

  /// Called by every thread of the team; `d` is the device whose computing is that thread's, if it is one's. False if
  /// the run was stopped.
  bool run(Team& team, DeviceId d);
  /// Of the step that ended, before clipping; 0 if it is not measured.
  double gradient_norm() const { return norm_; }

 private:
  bool sum_replicas(Team& team, DeviceId d);
  bool clip(Team& team, DeviceId d);
  double squares_of(std::uint32_t s) const;
  void find_norm(Team& team);
  template <class Visit>
  void each_stage(DeviceId d, const Visit& visit) const;

  const Plan& plan_;
  Workload& workload_;
  const RunOptions& options_;
  Execution& execution_;
  std::vector<std::unique_ptr<Device>>& devices_;
  bool has_sums_ = false;
  const std::vector<std::vector<StageId>> tied_;
  // By stage, of those whose first device is here; 0 of others.
  std::vector<double> squares_;
  double norm_ = 0;
};

}  // namespace stave
