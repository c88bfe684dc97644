// Work: how much of a model one microbatch of a schedule is, so that schedules which cut the model into more stages, or
// a microbatch into slices, can be compared with those that do not.
#pragma once

#include <optional>

#include "compiler/rational.h"
#include "compiler/schedule.h"

namespace stave {

/// Of a microbatch, on average; exact.
struct Work {
  /// Its forwards: ops, and what they cost together.
  Rational forwards;
  Rational time;
};

/// None if the schedule has no forwards, or if the sum does not fit a Rational. Cost: O(forwards).
std::optional<Work> work_of(const Schedule& schedule);

/// Every op and pair costs `factor` times as much; messages and setups stay, which do not shrink with the stage.
/// False, and nothing changed, if a cost does not fit a Rational then.
bool scale(CostSet& costs, Rational factor);

}  // namespace stave
