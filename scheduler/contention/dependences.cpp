#include "scheduler/contention/dependences.h"

#include <utility>

namespace stave {

Dependences::Dependences(const Program& program, const Costs& costs, const SimulationRules& rules)
    : program_(program),
      costs_(costs),
      lanes_(program.table),
      has_buffers_(rules.buffered_bytes.has_value()),
      ends_queue_(rules.blocking || rules.rendezvous),
      block_of_(blocks_of(program.table)),
      jobs_(program.nodes()),
      nodes_(program.nodes() + std::size_t{1}),
      slot_pending_(has_buffers_ ? program.messages.size() : 0, 0),
      next_(program.messages.size()) {
  for (std::uint32_t b = 0; b < program.table.blocks.size(); ++b)
    jobs_ -= static_cast<std::uint32_t>(program.table.blocks[b].size()) - 1;
  std::vector<NodeId> last(program.edges.size());
  for (std::uint32_t m = 0; m < program.messages.size(); ++m) {
    const NodeId node = program.node(MessageId(m));
    const NodeId before = std::exchange(last[program.messages[m].edge.value], node);
    if (!before.valid()) continue;
    next_[program.message_of(before).value] = node;
    if (!ends_queue_) ++pending(node.value);
  }
  for (std::uint32_t position = 0; position < program.table.size(); ++position)
    if (const std::uint32_t before = lanes_.previous(position);
        before != Lanes::kNone && job_of(before) != job_of(position))
      ++pending(job_of(position));

  const auto each_arrow = [&](const auto& visit) {
    for (std::uint32_t n = 0; n < program.nodes(); ++n)
      for (NodeId before : program.waits[n]) visit(before.value, n);
    if (rules.blocking) {
      each_queued(visit);
    } else if (rules.rendezvous) {
      for (std::uint32_t m = 0; m < program.messages.size(); ++m)
        if (next_[m].valid()) visit(program.node(MessageId(m)).value, next_[m].value);
    }
  };
  each_arrow([&](std::uint32_t from, std::uint32_t to) {
    ++nodes_[from].first;
    if (job_of(from) == job_of(to)) return;
    ++(frees_slot(from, NodeId(to)) ? slot_pending_[program.message_of(NodeId(to)).value] : pending(job_of(to)));
  });
  // Each row is filled from its end, which so becomes its beginning.
  std::uint32_t sum = 0;
  for (Node& each : nodes_) each.first = sum += each.first;
  followers_.resize(sum);
  each_arrow([&](std::uint32_t from, std::uint32_t to) { followers_[--nodes_[from].first] = NodeId(to); });
}

// A device comes to its computing and its messages one after the other, in its issue order; a message that two come to
// stands in both.
template <class Visit>
void Dependences::each_queued(const Visit& visit) const {
  for (std::uint32_t d = 0; d < program_.table.devices(); ++d) {
    NodeId before;
    for (NodeId node : program_.issue[d]) {
      if (!program_.is_message(node) && !lanes_.computes(node.value)) continue;
      if (before.valid()) visit(before.value, node.value);
      before = node;
    }
  }
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
