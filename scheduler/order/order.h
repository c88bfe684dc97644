// Order: from a Schedule to its Table. A device with one list keeps it; `any`, `fill` and `limit` are decided by a
// greedy scheduler in simulated time, as docs/language.md says (order by readiness).
#pragma once

#include <optional>

#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "core/table.h"
#include "scheduler/costs.h"

namespace stave {

/// The order of every device under `costs`. None, with a diagnostic, if a limit cannot be kept or stops a list for ever.
/// Where ops are missing, stand twice or wait for each other, the table is the text's own order, and verify says what is
/// wrong with it. The result never varies. Cost: O(n log d) for n ops on d devices, and O(log M) for each op under a
/// limit; a table of lists alone is copied.
std::optional<Table> order(const Schedule& schedule, const Costs& costs, Diagnostics& sink);

}  // namespace stave
