#include "scheduler/contention/dependences.h"

#include <numeric>

namespace stave {

Dependences::Dependences(const Program& program, const Costs& costs, const SimulationRules& rules)
    : program_(program),
      lanes_(program.table),
      has_buffers_(rules.buffered_bytes.has_value()),
      block_of_(blocks_of(program.table)),
      numbers_(program.nodes()),
      jobs_(program.nodes()),
      pending_(program.nodes(), 0),
      slot_pending_(has_buffers_ ? program.messages.size() : 0, 0) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
  for (std::uint32_t b = 0; b < program.table.blocks.size(); ++b)
    jobs_ -= static_cast<std::uint32_t>(program.table.blocks[b].size()) - 1;
  std::vector<Arrow> arrows;
  arrows.reserve(program.waits.items.size() + program.nodes() + program.messages.size());
  for (std::uint32_t n = 0; n < program.nodes(); ++n)
    for (NodeId before : program.waits[n]) add(before, n, 0, arrows);
  add_lanes(costs, arrows);
  if (rules.blocking)
    add_queues(arrows);
  else
    add_messages(rules, arrows);

  std::vector<std::uint32_t>& first = after_end_.first;
  first.assign(program.nodes() + std::size_t{1}, 0);
  for (const Arrow& arrow : arrows) ++first[arrow.from + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  after_end_.items.resize(arrows.size());
  std::vector<std::uint32_t> fill(first.begin(), first.end() - 1);
  for (const Arrow& arrow : arrows) after_end_.items[fill[arrow.from]++] = arrow.to;
}

void Dependences::add(NodeId before, std::uint32_t node, Ticks setup, std::vector<Arrow>& arrows) {
  const std::uint32_t from = job_of(before.value);
  const std::uint32_t to = job_of(node);
  if (from == to) return;
  const bool frees_slot = has_buffers_ && program_.is_message(NodeId(node)) &&
                          is_at_target(program_.message(NodeId(node)), before);
  ++(frees_slot ? slot_pending_[program_.message_of(NodeId(node)).value] : pending_[to]);
  arrows.push_back({from, {NodeId(node), setup, frees_slot}});
}

void Dependences::add_lanes(const Costs& costs, std::vector<Arrow>& arrows) {
  for (std::uint32_t position = 0; position < program_.table.size(); ++position)
    if (const std::uint32_t before = lanes_.previous(position); before != Lanes::kNone)
      add(NodeId(before), position, costs.setup(program_.table, before, position), arrows);
}

void Dependences::add_messages(const SimulationRules& rules, std::vector<Arrow>& arrows) {
  if (!rules.rendezvous) next_.resize(program_.messages.size());
  std::vector<NodeId> last(program_.edges.size());
  for (std::uint32_t m = 0; m < program_.messages.size(); ++m) {
    const NodeId node = program_.node(MessageId(m));
    NodeId& before = last[program_.messages[m].edge.value];
    if (before.valid() && rules.rendezvous) {
      add(before, node.value, 0, arrows);
    } else if (before.valid()) {
      next_[program_.message_of(before).value] = node;
      ++pending_[node.value];
    }
    before = node;
  }
}

// A device comes to its computing and its messages one after the other, in its issue order; a message that two come to
// stands in both.
void Dependences::add_queues(std::vector<Arrow>& arrows) {
  for (std::uint32_t d = 0; d < program_.table.devices(); ++d) {
    NodeId before;
    for (NodeId node : program_.issue[d]) {
      if (!program_.is_message(node) && !lanes_.computes(node.value)) continue;
      if (before.valid()) add(before, node.value, 0, arrows);
      before = node;
    }
  }
}

std::span<const NodeId> Dependences::after_start(std::uint32_t job) const {
  if (next_.empty() || !program_.is_message(NodeId(job))) return {};
  const NodeId& next = next_[program_.message_of(NodeId(job)).value];
  return next.valid() ? std::span(&next, 1) : std::span<const NodeId>();
}

// What ends there and was in the slot that the message arrives in: an op that read it, or a message that left from it.
bool Dependences::is_at_target(const Message& message, NodeId before) const {
  const DeviceId target = program_.edges[message.edge.value].target;
  if (!program_.is_message(before)) return DeviceId(lanes_.device_at(before.value)) == target;
  return program_.edges[program_.message(before).edge.value].source == target;
}

bool Dependences::is_at_source(const Message& message, NodeId follower) const {
  const Edge& edge = program_.edges[message.edge.value];
  if (!program_.is_message(follower)) return DeviceId(lanes_.device_at(follower.value)) == edge.source;
  const Edge& theirs = program_.edges[program_.message(follower).edge.value];
  // One that leaves from where this one arrives may carry its data on.
  return theirs.target == edge.source && theirs.source != edge.target;
}

}  // namespace stave
