// The strong bound of an instance: memory arcs, heads, tails, and Jackson's schedule on each lane.
#pragma once

#include <optional>
#include <vector>

#include "core/ticks.h"
#include "scheduler/bounds/instance.h"

namespace stave::bounds {

struct Strong {
  Ticks makespan = 0;
  /// Of the longest; none if it was not asked for.
  std::optional<Ticks> span;
};

/// None if no order keeps the limits. Cost: a few times units * classes, and as often for every device with `span`.
std::optional<Strong> strong_bound(Instance instance, bool span);

}  // namespace stave::bounds
