#include "scheduler/contention/machine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "scheduler/contention/simulate_shared.h"
#include "scheduler/model_prices.h"

namespace stave {

namespace {

/// One end of a shared link: its kind, the node, the group of its accelerators that share it, and the direction.
using SharedLink = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool>;

class Finder {
 public:
  explicit Finder(const ModelPrices& prices) : prices_(prices), cluster_(prices.cluster()) {}

  // The links that an edge takes and shares: where it leaves, and where it comes in.
  void add(const Edge& edge, Contention& into) {
    const std::uint32_t a = prices_.accelerator(edge.source.value);
    const std::uint32_t b = prices_.accelerator(edge.target.value);
    const std::uint32_t link = cluster_.link(a, b);
    if (link != Cluster::kNone) {
      const Link& kind = cluster_.links[link];
      if (kind.shared_by > 1 || !kind.both_ways)
        for (std::uint32_t number : {number_of(link, kind, a, true), number_of(link, kind, b, false)})
          if (const auto row = into.links_of_edge.items.begin() + into.links_of_edge.first.back();
              std::find(row, into.links_of_edge.items.end(), number) == into.links_of_edge.items.end())
            into.links_of_edge.items.push_back(number);
    }
    into.links_of_edge.end_row();
    into.links = static_cast<std::uint32_t>(numbers_.size());
  }

 private:
  std::uint32_t number_of(std::uint32_t link, const Link& kind, std::uint32_t accelerator, bool leaves) {
    const std::uint32_t node = cluster_.node_of(accelerator);
    const std::uint32_t group = (accelerator - cluster_.nodes[node].first) / kind.shared_by;
    const SharedLink key = {link, node, group, kind.both_ways && leaves};
    return numbers_.insert({key, static_cast<std::uint32_t>(numbers_.size())}).first->second;
  }

  const ModelPrices& prices_;
  const Cluster& cluster_;
  std::map<SharedLink, std::uint32_t> numbers_;
};

}  // namespace

bool Contention::slows_down() const {
  return std::ranges::any_of(slowdown, [](std::uint32_t each) { return each > kUnitSlowdown; });
}

Sharing sharing_of(const SimulationRules& rules, const Contention& contention) {
  return contention.shares_links() ? rules.links.value_or(Sharing::FirstCome) : Sharing::Own;
}

Contention contention_of(const ModelPrices& prices, const Program& program, const Costs& costs) {
  const Cluster& cluster = prices.cluster();
  Contention result;
  Finder finder(prices);
  for (const Edge& edge : program.edges) finder.add(edge, result);
  for (std::uint32_t d = 0; d < program.table.devices(); ++d)
    result.slowdown.push_back(
        static_cast<std::uint32_t>(std::lround(cluster.kind_of(prices.accelerator(d)).slowdown * kUnitSlowdown)));
  const double ticks_per_second = static_cast<double>(costs.ticks_per_unit) * 1e9 /
                                  static_cast<double>(std::max<std::int64_t>(1, ns_of_unit(costs.unit)));
  std::vector<double> bytes_per_tick;
  for (const Edge& edge : program.edges) {
    const std::uint32_t link =
        cluster.link(prices.accelerator(edge.source.value), prices.accelerator(edge.target.value));
    const Link none;
    const Link& kind = link == Cluster::kNone ? none : cluster.links[link];
    // What compression takes at the ends is on no link either.
    result.latency.push_back(
        static_cast<Ticks>((kind.latency_seconds + prices.model().message_seconds) * ticks_per_second));
    bytes_per_tick.push_back(kind.bytes_per_second / ticks_per_second);
  }
  result.bytes.reserve(program.messages.size());
  for (const Message& message : program.messages) {
    const std::uint32_t e = message.edge.value;
    const Ticks moves = costs.of_message(program, message) - result.latency[e];
    result.bytes.push_back(moves > 0 ? static_cast<std::uint64_t>(static_cast<double>(moves) * bytes_per_tick[e]) : 0);
  }
  return result;
}

bool contends(const SimulationRules& rules, const ModelPrices* machine, const Program& program, const Costs& costs) {
  if (rules.changes_order()) return true;
  if (machine == nullptr) return false;
  const Contention contention = contention_of(*machine, program, costs);
  return contention.slows_down() || (contention.shares_links() && rules.links != Sharing::Own);
}

bool fits_in_ticks(const ModelPrices* machine, const Program& program, const Costs& costs, double slower) {
  double slowdown = 1;
  for (std::uint32_t d = 0; machine != nullptr && d < program.table.devices(); ++d)
    slowdown = std::max(slowdown, machine->cluster().kind_of(machine->accelerator(d)).slowdown);
  double all = 0;
  for (Ticks each : lengths_of(program, costs)) all += static_cast<double>(each);
  return all * slower * slowdown <= static_cast<double>(kMaxTicks);
}

Timeline simulate_by(const SimulationRules& rules, const ModelPrices* machine, const Program& program,
                     const Costs& costs) {
  const Contention contention = machine == nullptr ? Contention() : contention_of(*machine, program, costs);
  return simulate_shared(program, lengths_of(program, costs), costs, rules, contention);
}

}  // namespace stave
