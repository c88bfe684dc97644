// Simulation ahead of time: for machines and rules by which the end of whatever starts is known at once. Only messages that
// want links are events then; ops, and what else has no one to wait for, are timed as soon as all that they need has an end.
//
// By the same rules as simulation.h, which must be asked where a start does not fix the end: where links are shared equally,
// messages slow down computing, or wait at the receiver for a slot; and where devices send themselves.
#pragma once

#include <vector>

#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/contention/machine.h"
#include "scheduler/contention/rules.h"
#include "scheduler/contention/sharing.h"
#include "scheduler/costs.h"

namespace stave {

bool is_known_ahead(Sharing sharing, const SimulationRules& rules, const Contention& contention);

/// As simulate_shared(); `sharing` is FirstCome or Own. Memory: 4 bytes a message beside the result. Cost: O(nodes + waits).
Timeline simulate_ahead(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs, Sharing sharing,
                        const SimulationRules& rules, const Contention& contention);

}  // namespace stave
