#include "scheduler/contention/trials.h"

#include <algorithm>
#include <cmath>

#include "core/lanes.h"
#include "scheduler/contention/simulate_shared.h"

namespace stave {

namespace {

// Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double drawn(std::uint64_t seed, std::uint64_t trial, std::uint64_t node) {
  std::uint64_t state = mixed(mixed(mixed(seed) ^ trial) ^ node);
  double sum = 0;
  for (int i = 0; i < 12; ++i) {
    state = mixed(state);
    sum += static_cast<double>(state >> 11) * 0x1p-53;
  }
  return sum - 6;
}

// Optional ops are no part of the makespan.
Ticks makespan_of(const Program& program, const Timeline& times) {
  Ticks last = 0;
  for (std::uint32_t n = 0; n < program.table.size(); ++n)
    if (!program.table.ops.kind(program.table.entries[n]).optional) last = std::max(last, times.end[n]);
  return last;
}

}  // namespace

Ticks parts_of_tick(const Costs& costs) {
  constexpr Ticks kPartsOfUnit = 1'000'000;
  return (kPartsOfUnit + costs.ticks_per_unit - 1) / costs.ticks_per_unit;
}

std::vector<double> makespans_of(const Program& program, const Costs& costs, const SimulationRules& rules,
                                 const Contention& contention, const Chance& chance,
                                 const std::function<void(std::uint32_t)>& done) {
  const Ticks parts = parts_of_tick(costs);
  const auto finer = [&](Ticks ticks) { return ticks * parts; };
  Costs fine = costs;
  fine.setups = costs.setups.map<Ticks>(finer);
  Contention in_parts = contention;
  for (Ticks& latency : in_parts.latency) latency = finer(latency);
  const std::vector<Ticks> own = lengths_of(program, costs);
  std::vector<double> factor(program.nodes(), static_cast<double>(parts));
  const Lanes lanes(program.table);
  for (const auto& [device, slower] : chance.stragglers)
    for (std::uint32_t n = program.table.first[device.value]; n < program.table.first[device.value + 1]; ++n)
      if (lanes.computes(n)) factor[n] *= slower;
  std::vector<Ticks> lengths(own.size());
  std::vector<double> result;
  for (std::uint32_t trial = 0; trial < chance.trials; ++trial) {
    for (std::uint32_t n = 0; n < program.nodes(); ++n) {
      const double by_chance = chance.jitter == 0 ? 1 : 1 + chance.jitter * drawn(chance.seed, trial, n);
      lengths[n] = std::llround(static_cast<double>(own[n]) * factor[n] * std::max(0.0, by_chance));
    }
    const Ticks makespan = makespan_of(program, simulate_shared(program, lengths, fine, rules, in_parts));
    result.push_back(static_cast<double>(makespan) / static_cast<double>(parts));
    done(trial);
  }
  std::sort(result.begin(), result.end());
  return result;
}

double quantile(const std::vector<double>& rising, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(rising.size())));
  return rising[std::clamp<std::size_t>(rank, 1, rising.size()) - 1];
}

}  // namespace stave
