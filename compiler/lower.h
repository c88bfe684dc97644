// From a table to a Program: messages, one issue order, waits and slots.
// What a Program promises is said in core/program.h; that it finishes without any buffering is checked by
// `verify(program)`. The rules: issue order by start time, slots by liveness, waits from the slots alone.
#pragma once

#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "compiler/table_needs.h"
#include "core/program.h"
#include "core/table.h"
#include "core/timeline.h"

namespace stave {

/// The Program of a table that passed `verify`. Its order is topological, ties broken by start time (of a message: the
/// end of its producer). Under the costs of `starts` no slot delays anything: simulate(program) has the same times.
///
/// Slots are pooled by device and payload: the data of an op lies in one from the op's start until the last message
/// that carries it, and the last op of the same device that reads it, have ended; at the other end from the start of
/// the message to the end of the last op that reads it. A message of no payload has none.
/// Waits on messages of one lane are all kept: messages of unlike length may end out of order.
/// Cost: O(entries + needs), about 60 ns a node.
/// `needs` are those of the table; without them they are found.
Program lower(const Schedule& schedule, const Table& table, const TableNeeds& needs, const Starts& starts);
Program lower(const Schedule& schedule, const Table& table, const Starts& starts);

/// The Program of a complete table in the table's own order, be it possible or not: each device sends right after the
/// op that makes the data and receives right before the first that reads it, or before the pair that one is in. `order`
/// is empty. An op that stands before one of its own device that it needs waits for it, in vain.
Program lower_unchecked(const Schedule& schedule, const Table& table);

/// True if every device's issue row, run strictly in order as one queue, finishes though nothing is buffered: a message
/// moves only when both its ends stand before it. If not, `sink` says which devices wait for each other.
/// Cost: O(nodes + waits).
bool verify(const Program& program, const Schedule& schedule, Diagnostics& sink);

}  // namespace stave
