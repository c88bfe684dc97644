#include "executor/walk.h"

#include <algorithm>

namespace stave {

Walk::Walk(Execution& execution)
    : execution_(execution),
      lanes_(execution.program().table),
      pending_(std::make_unique<std::atomic<std::uint32_t>[]>(execution.program().nodes())),
      mailboxes_(lanes_.count()) {}

void Walk::begin_step() {
  for (std::uint32_t n = 0; n < execution_.program().nodes(); ++n)
    pending_[n].store(execution_.plan().pending[n], std::memory_order_relaxed);
}

void Walk::wake() {
  for (Mailbox& mailbox : mailboxes_) {
    const std::scoped_lock lock(mailbox.mutex);
    mailbox.changed.notify_all();
  }
}

bool Walk::wait_for(const Team& team, std::uint32_t lane, std::uint32_t position) {
  if (pending_[position].load(std::memory_order_acquire) == 0) return !team.stopped();
  Mailbox& mailbox = mailboxes_[lane];
  std::unique_lock lock(mailbox.mutex);
  mailbox.changed.wait(lock, [&] { return pending_[position].load(std::memory_order_acquire) == 0 || team.stopped(); });
  return !team.stopped();
}

void Walk::release(NodeId n, std::vector<NodeId>& ready) {
  if (pending_[n.value].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (execution_.program().is_message(n)) {
    ready.push_back(n);
    return;
  }
  Mailbox& mailbox = mailboxes_[lanes_.lane(n.value)];
  const std::scoped_lock lock(mailbox.mutex);
  mailbox.changed.notify_all();
}

bool Walk::release_followers(Team& team, NodeId ended, std::vector<NodeId>& ready) {
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

bool Walk::run(Team& team, std::uint32_t lane) {
  const Plan& plan = execution_.plan();
  std::vector<NodeId> ready;
  Ticks lane_end = 0;
  std::uint32_t position = lanes_.head(lane);
  while (position != Lanes::kNone) {
    // An overlapped pair stands next to each other: its ops start together, when all of them may.
    const std::uint32_t count = plan.together[position];
    const std::uint32_t first = position;
    Ticks start = lane_end + execution_.setup(first);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!wait_for(team, lane, first + i)) return false;
      start = std::max(start, execution_.latest_end(NodeId(first + i)));
    }
    if (!execution_.compute(team, first, start)) return false;
    lane_end = execution_.end(NodeId(first));
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!release_followers(team, NodeId(first + i), ready)) return false;
      position = lanes_.next(first + i);
    }
  }
  return true;
}

}  // namespace stave
