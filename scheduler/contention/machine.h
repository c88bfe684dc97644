// What messages contend for, as a simulation needs it: which links each edge of a program takes, and what of a message's
// price it holds them for.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"
#include "core/rows.h"
#include "core/ticks.h"
#include "core/timeline.h"
#include "scheduler/contention/rules.h"
#include "scheduler/costs.h"

namespace stave {

/// A ratio of 1 in whole numbers, for slow-downs.
inline constexpr std::uint32_t kUnitSlowdown = 1000;

struct Contention {
  /// Links that several edges may want, and for every edge those that it takes.
  std::uint32_t links = 0;
  Rows<std::uint32_t> links_of_edge;
  /// By edge: the part of a message's price that is latency, in which it holds no link; all if the price is less.
  /// Empty: none.
  std::vector<Ticks> latency;
  /// By device: how many times longer computing takes while a message of the device moves, times kUnitSlowdown. Empty: 1.
  std::vector<std::uint32_t> slowdown;
  /// By message: its bytes. Empty: not known.
  std::vector<std::uint64_t> bytes;

  bool shares_links() const { return links > 0; }
  bool slows_down() const;
};

/// How messages share the links: Own where no link is shared.
Sharing sharing_of(const SimulationRules& rules, const Contention& contention);

class ModelPrices;

/// Of a cluster: a link that `shared_by` or `both_ways = false` says is shared, between the accelerators of one group and
/// one direction, or both. Slow-downs to a thousandth; latencies to the tick, rounded down; bytes from what a message
/// takes. Cost: O(edges log nodes + messages).
Contention contention_of(const ModelPrices& prices, const Program& program, const Costs& costs);

/// Whether a simulation by these rules on this machine (null: none, every edge with a link of its own) is another one than
/// simulate().
bool contends(const SimulationRules& rules, const ModelPrices* machine, const Program& program, const Costs& costs);

/// Whether all ops and messages one after the other, each slowed down and `slower` times longer than its price, can be
/// counted in ticks; without, a simulation may not be asked for. Cost: O(nodes).
bool fits_in_ticks(const ModelPrices* machine, const Program& program, const Costs& costs, double slower);

/// The times of a program by these rules, on this machine.
Timeline simulate_by(const SimulationRules& rules, const ModelPrices* machine, const Program& program,
                     const Costs& costs);

}  // namespace stave
