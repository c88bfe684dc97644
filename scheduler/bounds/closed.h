// The closed forms: lower bounds that take one walk over a table, for tables of any size.
#pragma once

#include <vector>

#include "compiler/schedule.h"
#include "core/table.h"
#include "core/ticks.h"
#include "scheduler/costs.h"

namespace stave::bounds {

struct Closed {
  Ticks makespan = 0;
  /// Shape: [device].
  std::vector<Ticks> span;
};

/// The makespan: the longest chain of needs; and on each lane the least head, the work, and the least tail, by
/// Jackson's schedule. Under a limit a device waits for the first op that takes none of it, with no more done before than fits.
/// The span of a device: the work of its lanes.
/// `table` must have passed verify. Cost: O(entries log entries + needs).
Closed closed_forms(const Schedule& schedule, const Table& table, const Costs& costs);

}  // namespace stave::bounds
