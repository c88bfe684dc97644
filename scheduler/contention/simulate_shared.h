// Simulation with contention: links that messages share, computing that is slowed by them, devices that send themselves,
// finite buffers. An event simulation on whole ticks.
//
// One rule of rounding: what moves at a share of its speed ends at the first whole tick by which all of it has passed, and
// holds its share until then. All else is exact, so that a result never varies.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/contention/machine.h"
#include "scheduler/contention/rules.h"
#include "scheduler/costs.h"

namespace stave {

/// What every op and message takes by itself. Shape: by node; of an overlapped pair or a reduction each has the length of
/// all. Unit: ticks.
std::vector<Ticks> lengths_of(const Program& program, const Costs& costs);

/// Start and end of every node. As simulate(), to which it is equal without rules and contention, but that:
///
/// * a message starts to move when the links of its edge are its turn (rules.links), moves for its price less the latency
///   of the edge, and ends a latency later; its start is when it begins to move;
/// * an op lasts longer by the slow-down of its device while a message from or to it moves;
/// * with `blocking`, a message begins when both its devices have come to it and they do nothing else until it ends;
/// * with `rendezvous`, a message begins when the one before it on its edge has ended;
/// * with `buffered_bytes`, a message leaves before its slot at the receiver is free if the edge has room for its bytes, and
///   ends when it has come and the slot is free.
///
/// `lengths` are those of lengths_of, or any others. Deterministic. Cost: O((nodes + waits) log edges), some 80 ns a node
/// where ends are known ahead (ahead.h), 120 elsewhere; with Fair also the messages that move at once, for each that starts or ends.
Timeline simulate_shared(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs,
                         const SimulationRules& rules, const Contention& contention);

}  // namespace stave
