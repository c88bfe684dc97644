#include "executor/lanes.h"

#include <algorithm>

namespace stave {

Lanes::Lanes(Execution& execution)
    : execution_(execution),
      pending_(std::make_unique<std::atomic<std::uint32_t>[]>(execution.program().nodes())),
      mailboxes_(execution.program().table.devices()) {}

void Lanes::begin_step() {
  for (std::uint32_t n = 0; n < execution_.program().nodes(); ++n)
    pending_[n].store(execution_.plan().pending[n], std::memory_order_relaxed);
}

void Lanes::wake() {
  for (Mailbox& mailbox : mailboxes_) {
    const std::scoped_lock lock(mailbox.mutex);
    mailbox.changed.notify_all();
  }
}

bool Lanes::wait_for(const Team& team, DeviceId d, std::uint32_t position) {
  if (pending_[position].load(std::memory_order_acquire) == 0) return !team.stopped();
  Mailbox& mailbox = mailboxes_[d.value];
  std::unique_lock lock(mailbox.mutex);
  mailbox.changed.wait(lock, [&] { return pending_[position].load(std::memory_order_acquire) == 0 || team.stopped(); });
  return !team.stopped();
}

void Lanes::release(NodeId n, std::vector<NodeId>& ready) {
  if (pending_[n.value].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (execution_.program().is_message(n)) {
    ready.push_back(n);
    return;
  }
  Mailbox& mailbox = mailboxes_[execution_.plan().device[n.value].value];
  const std::scoped_lock lock(mailbox.mutex);
  mailbox.changed.notify_all();
}

bool Lanes::release_followers(Team& team, NodeId ended, std::vector<NodeId>& ready) {
  const Program& program = execution_.program();
  const Plan& plan = execution_.plan();
  ready.clear();
  for (NodeId follower : plan.followers[ended.value]) release(follower, ready);
  while (!ready.empty()) {
    const NodeId n = ready.back();
    ready.pop_back();
    const MessageId message = program.message_of(n);
    const MessageId previous = plan.previous[message.value];
    Ticks start = execution_.latest_end(n);
    if (previous.valid()) start = std::max(start, execution_.start(program.node(previous)));
    if (!execution_.carry(team, n, start)) return false;
    const MessageId next = plan.next[message.value];
    if (next.valid()) release(program.node(next), ready);
    for (NodeId follower : plan.followers[n.value]) release(follower, ready);
  }
  return true;
}

bool Lanes::walk(Team& team, DeviceId d) {
  const Table& table = execution_.program().table;
  std::vector<NodeId> ready;
  Ticks lane_end = 0;
  for (std::uint32_t position = table.first[d.value]; position < table.first[d.value + 1]; ++position) {
    if (!wait_for(team, d, position)) return false;
    const NodeId node(position);
    if (!execution_.compute(team, position, std::max(lane_end, execution_.latest_end(node)))) return false;
    lane_end = execution_.end(node);
    if (!release_followers(team, node, ready)) return false;
  }
  return true;
}

}  // namespace stave
