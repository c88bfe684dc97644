// Trials: the makespan of a program whose ops take longer or shorter by chance, and on some devices always.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/program.h"
#include "core/ticks.h"
#include "scheduler/contention/machine.h"
#include "scheduler/contention/rules.h"
#include "scheduler/costs.h"

namespace stave {

struct Chance {
  std::uint32_t trials = 0;
  /// Each op and message takes (1 + jitter * z) times its price, z of mean 0 and deviation 1 (twelve uniform numbers less
  /// 6: bounded, and the same on every machine), but never less than 0.
  double jitter = 0;
  /// Devices whose computing takes so many times longer in every trial.
  std::vector<std::pair<DeviceId, double>> stragglers;
  std::uint64_t seed = 1;
};

/// In how many parts a tick is cut for trials, so that a unit of the costs has a million at least: lengths by chance would
/// else be rounded away.
Ticks parts_of_tick(const Costs& costs);

/// The makespans of all trials, rising, in ticks. Which numbers a trial draws follows from the seed, its number and the
/// node alone. All lengths times parts_of_tick() must fit into ticks. `done(trial)` is called after each. Cost: as many
/// simulations.
std::vector<double> makespans_of(const Program& program, const Costs& costs, const SimulationRules& rules,
                                const Contention& contention, const Chance& chance,
                                const std::function<void(std::uint32_t)>& done);

/// The least of rising values that at least this share of them do not exceed (nearest rank).
double quantile(const std::vector<double>& rising, double share);

}  // namespace stave
