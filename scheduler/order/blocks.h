// The blocks of an ordered table: which of its entries run as one. Pairs stand in the order; the reductions of a stage
// follow from what runs on all of its replicas together.
#pragma once

#include "compiler/schedule.h"
#include "core/table.h"

namespace stave {

/// Fills `table.blocks`. The two of a pair must stand next to each other. Cost: O(entries) where there are any.
void find_blocks(const Schedule& schedule, Table& table);

}  // namespace stave
