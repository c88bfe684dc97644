// Simulation ahead of time: for rules and machines by which the end of whatever starts is known as it starts. Then an op
// needs no event: it is timed as soon as all that it waits for has an end, be that in the past or in the future. Only
// messages that ask for links, and links on which others wait, are events.
//
// By the same rules as simulation.h, which does all else: a start does not fix the end where links are shared equally,
// where messages slow down computing, and where they wait at the receiver for a slot; nor the next start, where devices
// send themselves.
#pragma once

#include <vector>

#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/contention/machine.h"
#include "scheduler/contention/rules.h"
#include "scheduler/contention/sharing.h"
#include "scheduler/costs.h"

namespace stave {

/// Whether simulate_ahead() may be asked.
bool is_known_ahead(Sharing sharing, const SimulationRules& rules, const Contention& contention);

/// As simulate_shared(). Memory: 8 bytes a message and 2 an entry beside the result. Cost: as there.
Timeline simulate_ahead(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs, Sharing sharing,
                        const SimulationRules& rules, const Contention& contention);

}  // namespace stave
