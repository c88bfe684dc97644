#include "scheduler/contention/jobs.h"

#include <utility>

#include "scheduler/contention/buffers.h"

namespace stave {

namespace {

/// How many nodes ahead a walk along the order fetches memory: neighbours in time lie far apart in the program.
constexpr std::size_t kAhead = 24;

}  // namespace

Jobs::Jobs(const Program& program, const std::vector<Ticks>& lengths, const SimulationRules& rules)
    : program_(program),
      lanes_(program.table),
      block_of_(blocks_of(program.table)),
      jobs_(program.nodes()),
      has_buffers_(rules.buffered_bytes.has_value()),
      slot_pending_(has_buffers_ ? program.nodes() : 0, 0),
      job_of_(program.nodes()) {
  arrows_.reserve(program.waits.items.size() + program.table.size());
  add_all(lengths, rules);
  if (rules.blocking) add_queues();
}

inline void Jobs::arrow(NodeId before, NodeId node) {
  const std::uint32_t from = job_of_[before.value];
  const std::uint32_t to = job_of_[node.value];
  if (from == to) return;
  arrows_.push_back({to, std::exchange(jobs_[from].first_arrow, static_cast<std::uint32_t>(arrows_.size()))});
  if (!has_buffers_) {
    ++jobs_[to].pending;
    return;
  }
  const bool frees_slot = program_.is_message(node) && is_at_target(program_.message(node), before);
  const bool at_source = program_.is_message(before) && is_at_source(program_, lanes_, program_.message(before), node);
  marks_.push_back(static_cast<std::uint8_t>((frees_slot ? kFreesSlot : 0) | (at_source ? kAtSource : 0)));
  ++(frees_slot ? slot_pending_[to] : jobs_[to].pending);
}

// In the order, so that all that a node waits for has its job already.
void Jobs::add_all(const std::vector<Ticks>& lengths, const SimulationRules& rules) {
  const std::vector<NodeId>& order = program_.order;
  std::vector<std::uint32_t> last_on_edge(program_.edges.size(), kNone);
  std::vector<std::uint32_t> last_on_lane(lanes_.count(), kNone);
  std::vector<std::uint32_t> job_of_block(program_.table.blocks.size(), kNone);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size()) {
      const std::uint32_t coming = order[i + kAhead].value;
      fetch(program_.waits.first, coming);
      fetch(lengths, coming);
      fetch(job_of_, coming);
    }
    if (i + kAhead / 2 < order.size())
      fetch(program_.waits.items, program_.waits.first[order[i + kAhead / 2].value]);
    const NodeId node = order[i];
    const bool is_message = program_.is_message(node);
    const bool alone = is_message || block_of_.empty() || block_of_[node.value] == kNone;
    std::uint32_t job = i;
    if (!alone) {
      std::uint32_t& of_block = job_of_block[block_of_[node.value]];
      if (of_block == kNone) of_block = i;
      job = of_block;
    }
    job_of_[node.value] = job;
    if (job == i) {
      ++count_;
      jobs_[job].length = lengths[node.value];
      jobs_[job].place = is_message ? program_.message(node).edge.value | kMessage : lanes_.device_at(node.value);
    }
    for (NodeId before : program_.waits[node.value]) arrow(before, node);
    std::uint32_t& last = is_message ? last_on_edge[edge(job)] : last_on_lane[lanes_.lane(node.value)];
    const std::uint32_t before = std::exchange(last, i);
    if (before == kNone || (is_message && rules.blocking)) continue;
    const std::uint32_t from = job_of_[order[before].value];
    if (from == job) continue;
    if (jobs_[from].next != kNone || (is_message && rules.rendezvous)) {
      arrow(order[before], node);
    } else {
      jobs_[from].next = job;
      ++jobs_[job].pending;
    }
  }
}

// A device comes to its computing and its messages one after the other, in its issue order; a message that two come to
// stands in both.
void Jobs::add_queues() {
  for (std::uint32_t d = 0; d < program_.table.devices(); ++d) {
    NodeId before;
    for (NodeId node : program_.issue[d]) {
      if (!program_.is_message(node) && !lanes_.computes(node.value)) continue;
      if (before.valid()) arrow(before, node);
      before = node;
    }
  }
}

// What ends there and was in the slot that the message arrives in: an op that read it, or a message that left from it.
bool Jobs::is_at_target(const Message& message, NodeId before) const {
  const DeviceId target = program_.edges[message.edge.value].target;
  if (!program_.is_message(before)) return DeviceId(lanes_.device_at(before.value)) == target;
  return program_.edges[program_.message(before).edge.value].source == target;
}

}  // namespace stave
