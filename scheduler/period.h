// Period: the time of an iteration, where one follows the other without a barrier.
#pragma once

#include <optional>

#include "compiler/rational.h"
#include "compiler/schedule.h"
#include "core/table.h"
#include "scheduler/costs.h"

namespace stave {

/// The steady state of a table that is run again and again: each lane begins again where it ended (a setup between them counts), and the first forward
/// of a stage waits for the optimizer step of its device before it. Everything counts, optional ops too.
///
/// It is the largest mean of a cycle of waits: length over the iterations that it spans. Found by improving a cycle
/// until none is larger; exact. Unit: ticks. None if it does not fit a Rational. `table` must have passed verify.
/// Cost: O(entries + needs) a pass, and as many passes as lanes at worst, mostly a few.
std::optional<Rational> period(const Schedule& schedule, const Table& table, const Costs& costs);

}  // namespace stave
