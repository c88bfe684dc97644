// Prediction: costs in nanoseconds for a run, before it from the schedule, after it from what was measured.
// Running is executor/run.h, pricing scheduler/simulate.h.
#pragma once

#include <vector>

#include "core/program.h"
#include "core/result.h"
#include "core/timeline.h"
#include "executor/run.h"
#include "scheduler/costs.h"

namespace stave {

/// The costs of the schedule with a unit of `unit_ns`, rounded to whole ns; ticks are ns.
/// Errors: a sum past a hundred years.
Result<Costs> costs_in_ns(const Program& program, const Costs& costs, double unit_ns);

/// The price of every node of the program under costs whose ticks are ns.
std::vector<Ticks> node_costs(const Program& program, const Costs& costs_ns);

/// For every position what its device takes to change to it from the op before it on its lane.
std::vector<Ticks> setup_costs(const Program& program, const Costs& costs_ns);

/// Costs that give every op its own measured length. Messages keep their price.
Costs own_lengths(const Program& program, const Timeline& measured, const Costs& costs_ns);

/// Costs that give every op what is typical of its kind and stage. Messages keep their price.
Costs typical_lengths(const Program& program, const std::vector<TypicalLength>& lengths, const Costs& costs_ns);

/// Costs in which a message takes what those of its payload and devices typically took, as on GPUs, where nothing makes
/// it last its price.
Costs measured_messages(const Program& program, const std::vector<TypicalMessage>& lengths, const Costs& costs_ns);

}  // namespace stave
