#include "executor/walk.h"

#include <algorithm>

namespace stave {

namespace {
constexpr std::uint32_t kWithin = UINT32_MAX;
}

Walk::Walk(Execution& execution)
    : execution_(execution),
      lanes_(execution.program().table),
      edge_thread_(execution.program().edges.size(), kWithin),
      pending_(std::make_unique<std::atomic<std::uint32_t>[]>(execution.program().nodes())),
      ended_(std::make_unique<std::atomic<bool>[]>(execution.program().nodes())),
      lane_thread_(lanes_.count(), kWithin) {
  const Program& program = execution.program();
  for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
    if (!execution.is_here(DeviceId(lanes_.device(lane)))) continue;
    lane_thread_[lane] = static_cast<std::uint32_t>(mine_.size());
    mine_.push_back(lane);
  }
  for (std::uint32_t m = 0; m < program.messages.size(); ++m) {
    const NodeId node = program.node(MessageId(m));
    if (!execution.takes_part(node) || !execution.is_remote(node)) continue;
    std::uint32_t& thread = edge_thread_[program.messages[m].edge.value];
    if (thread == kWithin) {
      thread = threads();
      edges_.push_back(program.messages[m].edge);
      messages_.emplace_back();
    }
    messages_[thread - mine_.size()].push_back(node);
  }
  mailboxes_ = std::vector<Mailbox>(threads());
  find_pending();
}

void Walk::find_pending() {
  // In one process these are the plan's; what other processes do is not waited for, but for what arrives of it.
  const Program& program = execution_.program();
  const Plan& plan = execution_.plan();
  first_pending_.assign(program.nodes(), 0);
  for (std::uint32_t n = 0; n < program.nodes(); ++n) {
    if (!execution_.takes_part(NodeId(n))) continue;
    for (NodeId follower : plan.followers[n]) ++first_pending_[follower.value];
    // Its own edge's thread keeps the order of a remote message.
    if (!program.is_message(NodeId(n)) || execution_.is_remote(NodeId(n))) continue;
    const MessageId next = plan.next[program.message_of(NodeId(n)).value];
    if (next.valid()) ++first_pending_[program.node(next).value];
  }
}

DeviceId Walk::computes(std::uint32_t thread) const {
  return thread < mine_.size() && mine_[thread] < execution_.program().table.devices() ? DeviceId(mine_[thread])
                                                                                       : DeviceId();
}

std::uint32_t Walk::other_of(NodeId n) const {
  const Program& program = execution_.program();
  const Plan& plan = execution_.plan();
  if (program.is_message(n)) {
    if (!execution_.is_remote(n)) return kNobody;
    const Edge& edge = program.edges[program.message(n).edge.value];
    return (execution_.is_here(edge.source) ? edge.target : edge.source).value;
  }
  if (plan.work[n.value] != Work::Reduce) return kNobody;
  // The first replica has the gradients of all others and gives them the sum: they wait for it, and it for any of them.
  const StageId stage(program.table.ops.stage(program.table.entries[n.value]));
  const std::vector<DeviceId>& devices = plan.model.devices[stage];
  if (!execution_.is_here(devices.front())) return devices.front().value;
  return devices.size() == 2 && !execution_.is_here(devices.back()) ? devices.back().value : kNobody;
}

Position Walk::position(std::uint64_t what) const {
  const Program& program = execution_.program();
  const NodeId node(static_cast<std::uint32_t>(what));
  const auto is_sent = [&](NodeId n) {
    return execution_.is_here(program.edges[program.message(n).edge.value].source);
  };
  const auto is_under_way = [&](NodeId n) { return pending_[n.value].load(std::memory_order_relaxed) == 0; };
  if (program.is_message(node))
    return {(is_sent(node) ? "the send of the " : "the receive of the ") + execution_.text(node), other_of(node)};
  if (is_under_way(node)) return {execution_.text(node), other_of(node)};
  Position result("the wait before " + execution_.text(node));
  for (std::uint32_t n = 0; n < program.nodes() && result.waits_for == kNobody; ++n) {
    const NodeId before(n);
    if (!execution_.takes_part(before) || ended_[n].load(std::memory_order_relaxed)) continue;
    const auto& followers = execution_.plan().followers[n];
    if (std::find(followers.begin(), followers.end(), node) == followers.end()) continue;
    // What waits here itself does not wait for others; but a receive may well, whose slot is not free yet.
    if (is_under_way(before) || (program.is_message(before) && !is_sent(before))) result.waits_for = other_of(before);
  }
  return result;
}

void Walk::begin_step(Ticks predicted_ns) {
  predicted_ns_ = predicted_ns;
  for (std::uint32_t n = 0; n < execution_.program().nodes(); ++n) {
    pending_[n].store(first_pending_[n], std::memory_order_relaxed);
    ended_[n].store(false, std::memory_order_relaxed);
  }
}

void Walk::wake() {
  for (Mailbox& mailbox : mailboxes_) {
    const std::scoped_lock lock(mailbox.mutex);
    mailbox.changed.notify_all();
  }
}

Walk::Mailbox& Walk::mailbox_of(NodeId n) {
  const Program& program = execution_.program();
  return mailboxes_[program.is_message(n) ? edge_thread_[program.message(n).edge.value]
                                          : lane_thread_[lanes_.lane(n.value)]];
}

bool Walk::wait_for(const Team& team, NodeId node) {
  const auto is_ready = [&] { return pending_[node.value].load(std::memory_order_acquire) == 0; };
  if (is_ready()) return !team.stopped();
  Mailbox& mailbox = mailbox_of(node);
  std::unique_lock lock(mailbox.mutex);
  mailbox.changed.wait(lock, [&] { return is_ready() || team.stopped(); });
  return !team.stopped();
}

void Walk::release(NodeId n, std::vector<NodeId>& ready) {
  if (!execution_.takes_part(n)) return;
  if (pending_[n.value].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (execution_.program().is_message(n) && !execution_.is_remote(n)) {
    ready.push_back(n);
    return;
  }
  Mailbox& mailbox = mailbox_of(n);
  const std::scoped_lock lock(mailbox.mutex);
  mailbox.changed.notify_all();
}

bool Walk::release_followers(Team& team, NodeId ended, std::vector<NodeId>& ready) {
  const Program& program = execution_.program();
  const Plan& plan = execution_.plan();
  ready.clear();
  ended_[ended.value].store(true, std::memory_order_relaxed);
  for (NodeId follower : plan.followers[ended.value]) release(follower, ready);
  while (!ready.empty()) {
    const NodeId n = ready.back();
    ready.pop_back();
    const MessageId message = program.message_of(n);
    const MessageId previous = plan.previous[message.value];
    Ticks start = execution_.latest_end(n);
    if (previous.valid()) start = std::max(start, execution_.start(program.node(previous)));
    if (!execution_.carry(team, n, start)) return false;
    ended_[n.value].store(true, std::memory_order_relaxed);
    const MessageId next = plan.next[message.value];
    if (next.valid()) release(program.node(next), ready);
    for (NodeId follower : plan.followers[n.value]) release(follower, ready);
  }
  return true;
}

bool Walk::run(Team& team, std::uint32_t thread) {
  const bool done = thread < mine_.size() ? run_lane(team, thread) : run_edge(team, thread);
  if (watchdog_ != nullptr) watchdog_->end(thread);
  return done;
}

bool Walk::run_edge(Team& team, std::uint32_t thread) {
  std::vector<NodeId> ready;
  Ticks previous_start = 0;
  for (NodeId message : messages_[thread - mine_.size()]) {
    if (watchdog_ != nullptr) watchdog_->begin(thread, message.value, predicted_ns_);
    if (!wait_for(team, message)) return false;
    const Ticks start = std::max(previous_start, execution_.latest_end(message));
    if (!execution_.carry_half(team, message, start)) return false;
    previous_start = execution_.start(message);
    if (!release_followers(team, message, ready)) return false;
  }
  return true;
}

bool Walk::run_lane(Team& team, std::uint32_t thread) {
  const std::uint32_t lane = mine_[thread];
  const Plan& plan = execution_.plan();
  std::vector<NodeId> ready;
  Ticks lane_end = 0;
  std::uint32_t position = lanes_.head(lane);
  while (position != Lanes::kNone) {
    // An overlapped pair stands next to each other: its ops start together, when all of them may.
    const std::uint32_t count = plan.together[position];
    const std::uint32_t first = position;
    Ticks start = lane_end + execution_.setup(first);
    if (watchdog_ != nullptr) watchdog_->begin(thread, first, predicted_ns_);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!wait_for(team, NodeId(first + i))) return false;
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
