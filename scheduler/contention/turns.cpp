#include "scheduler/contention/turns.h"

#include <algorithm>
#include <utility>

#include "core/lanes.h"

namespace stave {

namespace {

using Turn = Turns::Turn;

class Finder {
 public:
  Finder(const Program& program, const Timeline& times)
      : program_(program), times_(times), block_of_(blocks_of(program.table)) {}

  // Each message of a link, with the one that had it before.
  void add_links(const Contention& contention) {
    std::vector<std::vector<NodeId>> on_link(contention.links);
    for (NodeId node : program_.order)
      if (program_.is_message(node))
        for (std::uint32_t link : contention.links_of_edge[program_.message(node).edge.value])
          on_link[link].push_back(node);
    for (std::vector<NodeId>& messages : on_link) {
      std::ranges::stable_sort(messages, {}, [&](NodeId node) { return times_.start[node.value]; });
      // Of those that take time, the last two: the last may start at the same time as one that takes none.
      Turn last, one_before;
      for (NodeId node : messages) {
        const Ticks start = times_.start[node.value];
        if (last.before.valid() && last.until <= start)
          add(node, last);
        else if (one_before.before.valid())
          add(node, one_before);
        if (const Ticks until = has_moved(node, contention); until > start)
          one_before = std::exchange(last, {node, until});
      }
    }
  }

  void add_devices() {
    const Lanes lanes(program_.table);
    for (std::uint32_t d = 0; d < program_.table.devices(); ++d) {
      NodeId before;
      for (NodeId node : program_.issue[d])
        if (program_.is_message(node) || lanes.computes(node.value)) add_after_end(node, std::exchange(before, node));
    }
  }

  void add_edges() {
    std::vector<NodeId> last(program_.edges.size());
    for (NodeId node : program_.order)
      if (program_.is_message(node)) add_after_end(node, std::exchange(last[program_.message(node).edge.value], node));
  }

  Rows<Turn> take() {
    Rows<Turn> result;
    if (found_.empty()) return result;
    std::ranges::stable_sort(found_, {}, [](const Found& each) { return each.node.value; });
    result.items.reserve(found_.size());
    for (std::uint32_t node = 0, i = 0; node < program_.nodes(); ++node) {
      for (; i < found_.size() && found_[i].node.value == node; ++i) result.items.push_back(found_[i].turn);
      result.end_row();
    }
    return result;
  }

 private:
  struct Found {
    NodeId node;
    Turn turn;
  };

  void add(NodeId node, const Turn& turn) { found_.push_back({node, turn}); }
  void add_after_end(NodeId node, NodeId before) {
    if (before.valid() && !run_as_one(before, node)) add(node, {before, times_.end[before.value]});
  }

  bool run_as_one(NodeId a, NodeId b) const {
    if (block_of_.empty() || program_.is_message(a) || program_.is_message(b)) return false;
    return block_of_[a.value] != UINT32_MAX && block_of_[a.value] == block_of_[b.value];
  }

  Ticks has_moved(NodeId message, const Contention& contention) const {
    const std::uint32_t m = program_.message_of(message).value;
    const Ticks came = times_.came.empty() ? times_.end[message.value] : times_.came[m];
    const Ticks latency = contention.latency.empty() ? 0 : contention.latency[program_.message(message).edge.value];
    return std::max(times_.start[message.value], came - latency);
  }

  const Program& program_;
  const Timeline& times_;
  const std::vector<std::uint32_t> block_of_;
  std::vector<Found> found_;
};

}  // namespace

Turns::Turns(const Program& program, const Timeline& timeline, const SimulationRules& rules,
             const Contention& contention) {
  Finder finder(program, timeline);
  if (rules.blocking) finder.add_devices();
  if (rules.rendezvous) finder.add_edges();
  if (info(sharing_of(rules, contention)).takes_turns)
    finder.add_links(contention);
  turns_ = finder.take();
}

Turns::Turns(const Program& program, const Timeline& timeline, const Costs& costs, const SimulationRules& rules,
             const ModelPrices* machine)
    : Turns(program, timeline, rules,
            machine == nullptr ? Contention() : contention_of(*machine, program, costs)) {}

}  // namespace stave
