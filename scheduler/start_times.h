// Start and end of every entry of a table, each as early as its device's order and its needs allow.
// The price of a static table without lanes or slots; a Program is priced by simulate.h.
#pragma once

#include <optional>

#include "compiler/schedule.h"
#include "compiler/table_needs.h"
#include "core/table.h"
#include "core/timeline.h"
#include "scheduler/costs.h"

namespace stave {

/// Shape: one start and one end a position. None if the order cannot finish: verify_order says why. `table` must be
/// complete, `needs` its own. Cost: O(entries + needs).
std::optional<Starts> try_start_times(const Table& table, const TableNeeds& needs, const Costs& costs);

/// The same of a table that has passed verify: an order that cannot finish is our bug.
Starts start_times(const Schedule& schedule, const Table& table, const Costs& costs);

}  // namespace stave
