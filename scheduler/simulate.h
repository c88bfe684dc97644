// Simulate: the times of a Program under given costs, as its lanes and slots allow.
// The executor follows the same rule, so that a prediction that differs from a measurement is a cost that is wrong.
#pragma once

#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/costs.h"

namespace stave {

/// Start and end of every node. An op starts when the op before it on its device and all it waits for have ended. A
/// message starts when the message before it on its edge has started and all it waits for, its producer among that,
/// have ended: it is a delay, and holds up neither end nor the next one.
///
/// `program` must have an order (see `lower`). Any costs will do; only under those it was lowered with is it certain
/// that no slot delays anything. Cost: one pass over the order, a few ns a node and a wait.
Timeline simulate(const Program& program, const Costs& costs);

}  // namespace stave
