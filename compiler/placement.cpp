// Where the stages of a schedule lie: `place` evaluated for every stage, and microbatch where it depends on it.
#include "compiler/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/evaluate.h"
#include "core/check.h"

namespace stave {

const Placement& Evaluator::placement() {
  if (place_state_ == State::Done) return placement_;
  const std::uint32_t stage_count = stages();
  const std::uint32_t device_count = devices();
  STAVE_CHECK(code_.place.has_value(), "stages are placed where no stage is asked for");
  const PlaceCode& place = *code_.place;
  const bool by_microbatch = place.microbatch_slot != kNoSlot;
  const std::uint32_t microbatch_count = by_microbatch ? count(SettingKind::Microbatches) : 1;
  if (std::uint64_t(stage_count) * microbatch_count > kMaxOps)
    fail("too-many", place.span, fmt::format("{} stages of {} microbatches: there are at most {} ops", stage_count,
                                             microbatch_count, kMaxOps));
  if (place_state_ == State::Open) fail("circular", place.span, "the place of a stage depends on itself");
  place_state_ = State::Open;
  Placement result;
  result.microbatches = by_microbatch ? microbatch_count : 0;
  result.device.reserve(std::size_t(stage_count) * microbatch_count);
  try {
    add_budget(std::uint64_t(stage_count) * microbatch_count);
    enter_loop(place.slot);
    if (by_microbatch) enter_loop(place.microbatch_slot);
    for (std::uint32_t s = 0; s < stage_count; ++s) {
      for (std::uint32_t m = 0; m < microbatch_count; ++m) {
        step(place.span);
        const Arena::Mark mark = arena_.mark();
        slots_[place.slot] = Datum::whole(s);
        if (by_microbatch) slots_[place.microbatch_slot] = Datum::whole(m);
        const Datum datum = value(place.device);
        if (datum.is_list())
          fail("wrong-kind", code_.spans[place.device],
               "a microbatch runs a stage on one device; replicas come from a place that depends on the microbatch",
               datum.text());
        result.device.push_back(static_cast<std::uint16_t>(index(place.device, "device", device_count)));
        if (!keeping_) arena_.release(mark);
      }
    }
    if (by_microbatch) leave_loop();
    leave_loop();
  } catch (const Stop&) {
    place_state_ = State::New;
    throw;
  }
  // Stages by device, each once; and devices by stage.
  std::vector<std::uint32_t> seen(device_count, UINT32_MAX);
  std::vector<std::pair<std::uint16_t, std::uint32_t>> on;
  for (std::uint32_t s = 0; s < stage_count; ++s) {
    for (std::uint32_t m = 0; m < microbatch_count; ++m) {
      const std::uint16_t device = result.device[std::size_t(s) * microbatch_count + m];
      if (seen[device] != s) {
        on.push_back({device, s});
        result.replicas.items.push_back(device);
      }
      seen[device] = s;
    }
    std::sort(result.replicas.items.begin() + result.replicas.first.back(), result.replicas.items.end());
    result.replicas.end_row();
    result.most_replicas =
        std::max(result.most_replicas, static_cast<std::uint32_t>(result.replicas[s].size()));
  }
  std::stable_sort(on.begin(), on.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  first_stage_.assign(device_count + 1, 0);
  for (const auto& [device, stage] : on) {
    ++first_stage_[device + 1];
    stages_by_device_.push_back(Datum::whole(stage));
  }
  for (std::uint32_t d = 0; d < device_count; ++d) first_stage_[d + 1] += first_stage_[d];
  placement_ = std::move(result);
  place_state_ = State::Done;
  return placement_;
}

Datum Evaluator::stages_on(std::uint32_t device) {
  placement();
  const std::uint32_t first = first_stage_[device];
  return Datum::written(stages_by_device_.data() + first, first_stage_[device + 1] - first);
}

}  // namespace stave
