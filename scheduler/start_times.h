// Start and end of every entry of a table, each as early as its device's order and its needs allow.
// The price of a static table without lanes or slots; a Program is priced by simulate.h.
#pragma once

#include "compiler/schedule.h"
#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "core/table.h"
#include "core/timeline.h"
#include "scheduler/costs.h"

namespace stave {

/// Shape: one start and one end a position. `table` must be complete, `needs` and `order` its own.
/// Cost: O(entries + needs), about 20 ns an entry.
Starts start_times(const Table& table, const TableNeeds& needs, const RunOrder& order, const Costs& costs);

/// The same of a table that has passed verify: an order that cannot finish is our bug.
Starts start_times(const Schedule& schedule, const Table& table, const Costs& costs);

}  // namespace stave
