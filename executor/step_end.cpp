#include "executor/step_end.h"

#include <algorithm>

#include "executor/gradients.h"

namespace stave {

StepEnd::StepEnd(const Plan& plan, Workload& workload, const RunOptions& options, Execution& execution,
                 std::vector<std::unique_ptr<Device>>& devices)
    : plan_(plan),
      workload_(workload),
      options_(options),
      execution_(execution),
      devices_(devices),
      tied_(workload.tied()),
      squares_(plan.model.stages, 0) {
  for (std::uint32_t s = 0; s < plan.model.stages; ++s)
    has_sums_ = has_sums_ || (plan.model.devices[StageId(s)].size() > 1 && plan.reduces_itself[s] == 0);
}

Result<void> StepEnd::check(const Plan& plan, const Workload& workload, const RunOptions& options) {
  if (std::ranges::count(plan.updates_itself, 1) == 0) return {};
  const std::string why = ": the schedule updates weights before all gradients are there";
  if (options.clip_norm > 0) return Failure{"gradients cannot be clipped by their norm" + why};
  if (!workload.tied().empty()) return Failure{"embeddings cannot be tied" + why};
  return {};
}

bool StepEnd::run(Team& team, DeviceId d) {
  if (has_sums_ && !sum_replicas(team, d)) return false;
  if (!tied_.empty() && !team.meet([&] { execution_.reduce_tied_at_end(team, tied_); })) return false;
  if (options_.measures_norm && !clip(team, d)) return false;
  if (d.valid()) devices_[d.value]->end_step();
  return true;
}

// Once all have ended their ops and before any goes on: in each process the thread of the first of a stage's devices that
// are there.
bool StepEnd::sum_replicas(Team& team, DeviceId d) {
  const auto nothing = [] {};
  if (!team.meet(nothing)) return false;
  for (std::uint32_t s = 0; s < plan_.model.stages && d.valid(); ++s) {
    const std::vector<DeviceId>& devices = plan_.model.devices[StageId(s)];
    const auto first = std::ranges::find_if(devices, [&](DeviceId each) { return execution_.is_here(each); });
    if (devices.size() < 2 || plan_.reduces_itself[s] != 0 || first == devices.end() || *first != d) continue;
    if (!execution_.reduce_at_end(team, StageId(s))) return false;
  }
  return team.meet(nothing);
}

template <class Visit>
void StepEnd::each_stage(DeviceId d, const Visit& visit) const {
  for (std::uint32_t s = 0; s < plan_.model.stages && d.valid(); ++s) {
    const std::vector<DeviceId>& devices = plan_.model.devices[StageId(s)];
    const auto at = std::ranges::find(devices, d);
    if (at != devices.end()) visit(s, static_cast<std::uint32_t>(at - devices.begin()));
  }
}

bool StepEnd::clip(Team& team, DeviceId d) {
  each_stage(d, [&](std::uint32_t s, std::uint32_t replica) {
    if (replica == 0) squares_[s] = squares_of(s);
  });
  if (!team.meet([&] { find_norm(team); })) return false;
  // One that is not a number is left to the loss of the next step.
  if (options_.clip_norm <= 0 || !(norm_ > options_.clip_norm)) return true;
  const auto factor = static_cast<float>(options_.clip_norm / norm_);
  each_stage(d, [&](std::uint32_t s, std::uint32_t replica) {
    scale_gradients(workload_.stage(StageId(s), replica)->gradients(), factor);
  });
  return true;
}

// Tied gradients count where they come first.
double StepEnd::squares_of(std::uint32_t s) const {
  const GradientView all = workload_.stage(StageId(s))->gradients();
  const auto counts = [&](const std::vector<StageId>& group) {
    return group.front().value == s || std::ranges::find(group, StageId(s)) == group.end();
  };
  if (std::ranges::all_of(tied_, counts)) return sum_of_squares(all);
  const GradientView tied = workload_.stage(StageId(s))->tied_gradients();
  auto* const begin = static_cast<float*>(all.data);
  auto* const hole = static_cast<float*>(tied.data);
  const auto before = static_cast<std::size_t>(hole - begin);
  return sum_of_squares({all.element, begin, before}) +
         sum_of_squares({all.element, hole + tied.count, all.count - before - tied.count});
}

void StepEnd::find_norm(Team& team) {
  const Result<double> norm = norm_of(squares_, options_.ranks);
  if (!norm) return team.fail(norm.failure().message);
  norm_ = norm.value();
}

}  // namespace stave
