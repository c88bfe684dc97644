#include "executor/rendezvous.h"

#include <algorithm>

#include "executor/execution.h"

namespace stave {

Rendezvous::Rendezvous(Execution& execution) : execution_(execution), lanes_(execution.program().table) {
  begin_step();
}

void Rendezvous::begin_step() {
  const Program& program = execution_.program();
  cursor_.assign(program.table.devices(), 0);
  running_.assign(program.table.devices(), 0);
  lane_end_.assign(program.table.devices(), 0);
  done_.assign(program.nodes(), 0);
}

void Rendezvous::wake() {
  const std::scoped_lock lock(mutex_);
  changed_.notify_all();
}

NodeId Rendezvous::head(DeviceId d) const {
  const auto queue = execution_.program().issue[d.value];
  return cursor_[d.value] < queue.size() ? queue[cursor_[d.value]] : NodeId();
}

DeviceId Rendezvous::other_end(NodeId message, DeviceId d) const {
  const Program& program = execution_.program();
  const Edge& edge = program.edges[program.message(message).edge.value];
  return edge.source == d ? edge.target : edge.source;
}

bool Rendezvous::ready(DeviceId d) const {
  const Program& program = execution_.program();
  const NodeId node = head(d);
  if (program.is_message(node)) {
    const DeviceId other = other_end(node, d);
    if (running_[other.value] != 0 || head(other) != node) return false;
    if (done_[program.message(node).producer] == 0) return false;
  }
  const auto may_start = [&](NodeId n) {
    return std::ranges::all_of(program.waits[n.value], [&](NodeId before) { return done_[before.value] != 0; });
  };
  if (program.is_message(node)) return may_start(node);
  if (execution_.plan().together[node.value] == 2 && !may_start(NodeId(node.value + 1))) return false;
  if (execution_.plan().meeting_of.empty()) return may_start(node);
  const std::uint32_t meeting = execution_.plan().meeting_of[node.value];
  if (meeting == UINT32_MAX) return may_start(node);
  // A reduction holds up its device until the others are there: nobody comes before all can.
  return std::ranges::all_of(execution_.plan().meetings[meeting], [&](std::uint32_t position) {
    const DeviceId device = execution_.plan().device[position];
    return done_[position] != 0 || (head(device) == NodeId(position) && may_start(NodeId(position)));
  });
}

bool Rendezvous::blocked_for_ever() const {
  for (std::uint32_t d = 0; d < cursor_.size(); ++d) {
    if (running_[d] != 0) return false;
    if (head(DeviceId(d)).valid() && ready(DeviceId(d))) return false;
  }
  return true;
}

Deadlock::Blocked Rendezvous::why(DeviceId d) const {
  const Program& program = execution_.program();
  Deadlock::Blocked result;
  result.device = d;
  result.node = head(d);
  result.needs = result.node;
  const auto needs = [&](NodeId before) {
    if (done_[before.value] != 0 || result.on.valid()) return;
    result.needs = before;
    if (!program.is_message(before)) {
      result.on = execution_.plan().device[before.value];
      return;
    }
    // The end of the message that has not come to it is the one to wait for.
    const Edge& edge = program.edges[program.message(before).edge.value];
    if (edge.source == d || edge.target == d) {
      const DeviceId far = other_end(before, d);
      result.on = head(far) == before ? d : far;
    } else {
      result.on = head(edge.source) == before ? edge.target : edge.source;
    }
  };
  for (NodeId before : program.waits[result.node.value]) needs(before);
  if (program.is_message(result.node)) {
    needs(NodeId(program.message(result.node).producer));
    if (!result.on.valid()) result.on = other_end(result.node, d);
  }
  if (!result.on.valid()) result.on = d;
  result.instead = head(result.on);
  return result;
}

void Rendezvous::note_deadlock() {
  deadlocked_ = true;
  std::vector<std::uint32_t> at(cursor_.size(), UINT32_MAX);
  for (std::uint32_t d = 0; d < cursor_.size(); ++d) {
    if (!head(DeviceId(d)).valid()) continue;
    at[d] = static_cast<std::uint32_t>(deadlock_.blocked.size());
    deadlock_.blocked.push_back(why(DeviceId(d)));
  }
  // From each blocked device follow who waits for whom; the first way that closes is the cycle.
  for (const Deadlock::Blocked& begin : deadlock_.blocked) {
    std::vector<DeviceId> way;
    DeviceId d = begin.device;
    while (at[d.value] != UINT32_MAX && std::ranges::find(way, d) == way.end()) {
      way.push_back(d);
      d = deadlock_.blocked[at[d.value]].on;
    }
    const auto again = std::ranges::find(way, d);
    if (again == way.end()) continue;
    deadlock_.cycle.assign(again, way.end());
    return;
  }
}

bool Rendezvous::walk(Team& team, DeviceId d) {
  const Program& program = execution_.program();
  std::unique_lock lock(mutex_);
  while (true) {
    if (team.stopped()) return false;
    const NodeId node = head(d);
    if (!node.valid()) {
      changed_.notify_all();
      break;
    }
    if (!ready(d)) {
      if (blocked_for_ever()) {
        if (!deadlocked_) note_deadlock();
        lock.unlock();
        team.stop();
        return false;
      }
      changed_.wait(lock);
      continue;
    }
    Ticks start = std::max(lane_end_[d.value], execution_.latest_end(node));
    running_[d.value] = 1;
    if (!program.is_message(node)) {
      // The second of a pair has run with the first.
      if (done_[node.value] == 0) {
        if (const std::uint32_t before = lanes_.previous(node.value); before != Lanes::kNone)
          start = std::max(start, execution_.end(NodeId(before)) + execution_.setup(node.value));
        lock.unlock();
        if (!execution_.compute(team, node.value, start)) return false;
        lock.lock();
        lane_end_[d.value] = execution_.end(node);
        if (execution_.plan().together[node.value] == 2) done_[node.value + 1] = 1;
      }
    } else {
      const DeviceId other = other_end(node, d);
      running_[other.value] = 1;
      start = std::max(start, lane_end_[other.value]);
      lock.unlock();
      if (!execution_.carry(team, node, start)) return false;
      if (!execution_.wait_until(team, execution_.end(node))) return false;
      lock.lock();
      lane_end_[d.value] = lane_end_[other.value] = execution_.end(node);
      running_[other.value] = 0;
      ++cursor_[other.value];
    }
    running_[d.value] = 0;
    ++cursor_[d.value];
    done_[node.value] = 1;
    changed_.notify_all();
  }
  // A device that ends may leave others blocked for ever: they look again when woken.
  return true;
}

std::string describe(const Program& program, const Deadlock& deadlock) {
  std::string text;
  for (const Deadlock::Blocked& b : deadlock.blocked) {
    text += "device " + std::to_string(b.device.value) + " is stuck at ";
    text += program.is_message(b.node) ? "the " + describe(program, b.node) : describe(program, b.node);
    if (b.needs == b.node) {
      text += ", which needs device " + std::to_string(b.on.value) + " to be there too";
    } else {
      text += ", which needs ";
      text += program.is_message(b.needs) ? "the " + describe(program, b.needs) : describe(program, b.needs);
      text += b.on == b.device ? ", later in its own order" : "";
    }
    if (b.on != b.device && !b.instead.valid()) text += "; device " + std::to_string(b.on.value) + " has ended";
    text += "\n";
  }
  if (!deadlock.cycle.empty()) {
    text += "cycle: ";
    for (DeviceId d : deadlock.cycle) text += "device " + std::to_string(d.value) + " waits for ";
    text += "device " + std::to_string(deadlock.cycle.front().value) + "\n";
  }
  return text;
}

}  // namespace stave
