// Proofs about a table, before anything runs: every op stands once and where it is placed, and the order is possible.
// That the messages finish too is proven of the Program: lower.h.
#pragma once

#include <optional>

#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "core/table.h"

namespace stave {

/// True if every op that exists and is not optional stands exactly once, by itself or in a fused one, on the device it
/// is placed on, and no device is without work. Ops that are wrong in one way make one diagnostic a kind of op.
/// Cost: O(entries + ops).
bool verify_complete(const Schedule& schedule, const Table& table, Diagnostics& sink);

/// The proof that the devices, each running its row in order, come to the end: an order of all. None if they do not;
/// then `sink` has for every two kinds of op on one device that stand in the wrong order their first two, or else a
/// shortest cycle among the first ops that cannot run: what an op needs is an edge, and so is a stretch of one device's
/// row. `table` must be complete, `needs` its own. Cost: O(entries + needs), about 15 ns an entry.
std::optional<RunOrder> verify_order(const Schedule& schedule, const Table& table, const TableNeeds& needs,
                                     Diagnostics& sink);

/// Both; the order only of a table that is complete.
bool verify(const Schedule& schedule, const Table& table, Diagnostics& sink);

}  // namespace stave
