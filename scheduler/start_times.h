// Start and end of every entry of a table, each as early as its device's order and its needs allow.
// The price of a static table without lanes or slots; a Program is priced by simulate.h.
#pragma once

#include "compiler/schedule.h"
#include "core/table.h"
#include "core/timeline.h"
#include "scheduler/costs.h"

namespace stave {

/// Shape: one start and one end a position. `table` must have passed verify: an order that cannot finish is our bug.
/// Cost: O(entries + needs).
Starts start_times(const Schedule& schedule, const Table& table, const Costs& costs);

}  // namespace stave
