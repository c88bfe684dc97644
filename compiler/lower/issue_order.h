// One topological order of all entries and messages, by start time.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/lower/readers.h"
#include "compiler/table_needs.h"
#include "core/table.h"
#include "core/timeline.h"

namespace stave {

/// Every node before those that need it, earlier starts first; at one time messages before entries, unless an entry of
/// no length must come between. Result: a position, or table.size() plus the reader that leads a message, for its node.
/// Cost: a radix sort of the start times, O(nodes).
std::vector<NodeId> issue_order(const Table& table, const TableNeeds& needs, const Starts& starts,
                                const Readers& readers);

}  // namespace stave
