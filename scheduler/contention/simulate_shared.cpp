#include "scheduler/contention/simulate_shared.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/check.h"
#include "core/lanes.h"
#include "scheduler/contention/dependences.h"
#include "scheduler/contention/event_queue.h"
#include "scheduler/contention/movement.h"

namespace stave {

namespace {

/// An op ends, or a message has moved and its links are free. Where that may come sooner or later than it seemed, only the
/// event with the newest version counts.
struct Event {
  /// In place of a version: an op may start, for its setup is over; or a message has come, for its latency is.
  static constexpr std::uint32_t kWaitIsOver = UINT32_MAX;

  Ticks time = 0;
  std::uint32_t job = 0;
  std::uint32_t version = 0;
};

/// The messages that want a link, first come, first served.
class Line {
 public:
  bool empty() const { return first_ == messages_.size(); }
  std::uint32_t front() const { return messages_[first_]; }
  void push(std::uint32_t message) { messages_.push_back(message); }
  void pop() {
    if (++first_ < messages_.size() && first_ < kLongest) return;
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

 private:
  static constexpr std::size_t kLongest = 4096;
  std::vector<std::uint32_t> messages_;
  /// Those before it have been served.
  std::size_t first_ = 0;
};

class Simulation {
 public:
  Simulation(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs, const SimulationRules& rules,
             const Contention& contention)
      : program_(program),
        lengths_(lengths),
        rules_(rules),
        contention_(contention),
        graph_(program, costs, rules),
        sharing_(!contention.shares_links() ? Sharing::Own : rules.links.value_or(Sharing::FirstCome)),
        ready_at_(costs.setups.empty() ? 0 : program.nodes(), 0),
        room_(program.edges.size(), rules.buffered_bytes.value_or(0)),
        movements_(contention, sharing_ == Sharing::Fair ? contention.links : 0) {
    times_.ticks_per_unit = costs.ticks_per_unit;
    times_.unit = costs.unit;
    times_.shares_links = sharing_ != Sharing::Own;
    times_.start.assign(program.nodes(), 0);
    times_.end.assign(program.nodes(), 0);
    if (sharing_ == Sharing::FirstCome) queues_.resize(contention.links);
    if (rules.buffered_bytes) {
      has_arrived_.assign(program.messages.size(), false);
      is_buffered_.assign(program.messages.size(), false);
      held_.assign(program.edges.size(), UINT32_MAX);
    }
    computing_.assign(program.table.devices(), {});
    moving_.assign(program.table.devices(), 0);
  }

  // At each moment all that ends, and all ops that start; then the messages that may begin, by the issue order, and after
  // each what that ends or starts at once.
  Timeline run() {
    for (std::uint32_t n = 0; n < program_.nodes(); ++n)
      if (graph_.job_of(n) == n && graph_.pending(n) == 0) begin(n);
    while (true) {
      if (events_.is_due()) {
        take(events_.take_due());
      } else if (!ready_messages_.empty()) {
        const std::uint32_t message = ready_messages_.top();
        ready_messages_.pop();
        message_ready(message);
      } else if (events_.advance()) {
        now_ = events_.now();
      } else {
        break;
      }
    }
    STAVE_CHECK(done_ == graph_.jobs(), "a simulation with contention does not finish");
    return std::move(times_);
  }

 private:
  void take(const Event& event) {
    const bool is_message = program_.is_message(NodeId(event.job));
    if (event.version == Event::kWaitIsOver) return is_message ? arrive(event.job) : start_op(event.job);
    if (event.version == versions(event.job)) return is_message ? end_move(event.job) : end_op(event.job);
  }

  std::uint32_t versions(std::uint32_t job) const { return versions_.empty() ? 0 : versions_[job]; }
  std::uint32_t next_version(std::uint32_t job) {
    if (versions_.empty()) versions_.assign(program_.nodes(), 0);
    return ++versions_[job];
  }

  const Edge& edge_of(std::uint32_t message) const { return program_.edges[program_.message(NodeId(message)).edge.value]; }
  std::uint32_t number_of(std::uint32_t message) const { return program_.message_of(NodeId(message)).value; }

  // --- ops

  struct Computing {
    std::uint32_t job = UINT32_MAX;
    /// What is left to compute, in parts of a tick's work.
    Int128 left = 0;
    Ticks since = 0;
  };

  bool slows(std::uint32_t device) const {
    return !contention_.slowdown.empty() && contention_.slowdown[device] > kUnitSlowdown;
  }
  // Parts that a device does in a tick: its slow-down of them at full speed, so that both speeds are whole.
  Ticks speed(std::uint32_t device) const { return moving_[device] > 0 ? kUnitSlowdown : contention_.slowdown[device]; }

  void start_op(std::uint32_t job) {
    graph_.each_member(job, [&](std::uint32_t node) { times_.start[node] = now_; });
    const std::uint32_t device = graph_.device_of(job);
    if (!slows(device) || !graph_.computes(job)) return events_.push({now_ + lengths_[job], job, versions(job)});
    Computing& mine = computing_[device];
    mine = {job, static_cast<Int128>(lengths_[job]) * contention_.slowdown[device], now_};
    plan_end(device);
  }

  void plan_end(std::uint32_t device) {
    const Computing& mine = computing_[device];
    const Ticks per_tick = speed(device);
    const auto ticks = static_cast<Ticks>((mine.left + per_tick - 1) / per_tick);
    events_.push({now_ + ticks, mine.job, next_version(mine.job)});
  }

  // Before the speed of a device changes.
  void note_computed(std::uint32_t device) {
    Computing& mine = computing_[device];
    if (mine.job == UINT32_MAX) return;
    mine.left = std::max<Int128>(0, mine.left - static_cast<Int128>(now_ - mine.since) * speed(device));
    mine.since = now_;
  }

  void end_op(std::uint32_t job) {
    const std::uint32_t device = graph_.device_of(job);
    if (computing_[device].job == job) computing_[device].job = UINT32_MAX;
    finish(job);
  }

  void finish(std::uint32_t job) {
    ++done_;
    graph_.each_member(job, [&](std::uint32_t node) { times_.end[node] = now_; });
    graph_.each_after_end(job, [&](const Dependences::After& after) { release(after); });
  }

  void release(const Dependences::After& after) {
    if (after.frees_slot) return slot_free(number_of(after.node.value));
    const std::uint32_t job = graph_.job_of(after.node.value);
    if (!ready_at_.empty()) ready_at_[job] = std::max(ready_at_[job], now_ + after.setup);
    if (--graph_.pending(job) == 0) begin(job);
  }

  // All that a job needs has ended.
  void begin(std::uint32_t job) {
    if (program_.is_message(NodeId(job))) return ready_messages_.push(job);
    if (!ready_at_.empty() && ready_at_[job] > now_) return events_.push({ready_at_[job], job, Event::kWaitIsOver});
    start_op(job);
  }

  // --- messages

  void message_ready(std::uint32_t message) {
    if (rules_.buffered_bytes && !may_leave(message)) return;
    if (sharing_ != Sharing::FirstCome) return start_move(message);
    const auto links = contention_.links_of_edge[program_.message(NodeId(message)).edge.value];
    for (std::uint32_t link : links) queues_[link].push(message);
    if (is_first(message)) start_move(message);
  }

  bool is_first(std::uint32_t message) const {
    const auto links = contention_.links_of_edge[program_.message(NodeId(message)).edge.value];
    return std::ranges::all_of(links, [&](std::uint32_t link) { return queues_[link].front() == message; });
  }

  Ticks latency(std::uint32_t message) const {
    if (contention_.latency.empty()) return 0;
    return std::min(lengths_[message], contention_.latency[program_.message(NodeId(message)).edge.value]);
  }

  void start_move(std::uint32_t message) {
    times_.start[message] = now_;
    if (const NodeId next = graph_.after_start(NodeId(message)); next.valid()) release({next});
    const Edge& edge = edge_of(message);
    for (DeviceId d : {edge.source, edge.target}) change_moving(d.value, 1);
    const Ticks length = lengths_[message] - latency(message);
    if (sharing_ != Sharing::Fair) return events_.push({now_ + length, message, versions(message)});
    movements_.add(message, program_.message(NodeId(message)).edge.value, length, now_);
    plan_moves();
  }

  // A device's first message that moves slows it down, its last speeds it up.
  void change_moving(std::uint32_t device, int by) {
    if (!slows(device)) return;
    const bool changes = moving_[device] == (by > 0 ? 0 : 1);
    if (changes) note_computed(device);
    moving_[device] += by;
    if (changes && computing_[device].job != UINT32_MAX) plan_end(device);
  }

  void plan_moves() {
    movements_.each_changed(now_, [&](std::uint32_t message, Ticks end) {
      events_.push({end, message, next_version(message)});
    });
  }

  void end_move(std::uint32_t message) {
    const Edge& edge = edge_of(message);
    for (DeviceId d : {edge.source, edge.target}) change_moving(d.value, -1);
    if (sharing_ == Sharing::Fair) {
      movements_.remove(message, now_);
      plan_moves();
    } else if (sharing_ == Sharing::FirstCome) {
      leave_queues(message);
    }
    const Ticks rest = latency(message);
    if (rest == 0) return arrive(message);
    events_.push({now_ + rest, message, Event::kWaitIsOver});
  }

  void leave_queues(std::uint32_t message) {
    const auto links = contention_.links_of_edge[program_.message(NodeId(message)).edge.value];
    for (std::uint32_t link : links) queues_[link].pop();
    for (std::uint32_t link : links) {
      if (queues_[link].empty()) continue;
      const std::uint32_t next = queues_[link].front();
      // Another link of it may have been freed in this same moment, and have started it.
      const bool has_started = started_in_ == std::pair(now_, next);
      if (has_started || !is_first(next)) continue;
      started_in_ = {now_, next};
      start_move(next);
    }
  }

  void arrive(std::uint32_t message) {
    if (!rules_.buffered_bytes) return finish(message);
    // What waits for the sender's slot goes on: the data has left it.
    const std::uint32_t number = number_of(message);
    has_arrived_[number] = true;
    graph_.each_after_end(message, [&](const Dependences::After& each) {
      if (graph_.is_at_source(program_.messages[number], each.node)) release(each);
    });
    if (graph_.slot_pending(number) == 0) deliver(message);
  }

  // --- buffers

  bool may_leave(std::uint32_t message) {
    const std::uint32_t number = number_of(message);
    if (graph_.slot_pending(number) == 0) return true;
    const std::uint32_t edge = program_.messages[number].edge.value;
    if (size_of(number) <= room_[edge]) {
      room_[edge] -= size_of(number);
      is_buffered_[number] = true;
      return true;
    }
    held_[edge] = message;
    return false;
  }

  void slot_free(std::uint32_t number) {
    if (--graph_.slot_pending(number) != 0) return;
    const std::uint32_t message = program_.node(MessageId(number)).value;
    if (has_arrived_[number]) return deliver(message);
    std::uint32_t& held = held_[program_.messages[number].edge.value];
    if (held == message) ready_messages_.push(std::exchange(held, UINT32_MAX));
  }

  std::uint64_t size_of(std::uint32_t number) const {
    const Message& m = program_.messages[number];
    return contention_.bytes.empty() ? 0 : contention_.bytes[m.payload * program_.edges.size() + m.edge.value];
  }

  void deliver(std::uint32_t message) {
    const std::uint32_t number = number_of(message);
    ++done_;
    times_.end[message] = now_;
    graph_.each_after_end(message, [&](const Dependences::After& each) {
      if (!graph_.is_at_source(program_.messages[number], each.node)) release(each);
    });
    if (!is_buffered_[number]) return;
    const std::uint32_t edge = program_.messages[number].edge.value;
    room_[edge] += size_of(number);
    if (held_[edge] != UINT32_MAX) ready_messages_.push(std::exchange(held_[edge], UINT32_MAX));
  }

  const Program& program_;
  const std::vector<Ticks>& lengths_;
  const SimulationRules& rules_;
  const Contention& contention_;
  Dependences graph_;
  const Sharing sharing_;
  Timeline times_;
  EventQueue<Event> events_;
  /// That may begin now, the lowest first.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready_messages_;
  Ticks now_ = 0;
  std::uint32_t done_ = 0;
  /// By job, when all setups are over; empty where there are none.
  std::vector<Ticks> ready_at_;
  std::vector<std::uint32_t> versions_;
  std::vector<Line> queues_;
  std::pair<Ticks, std::uint32_t> started_in_ = {-1, UINT32_MAX};
  // By device.
  std::vector<Computing> computing_;
  std::vector<std::uint32_t> moving_;
  // Of buffers, by message: what has become of it.
  std::vector<bool> has_arrived_;
  std::vector<bool> is_buffered_;
  // By edge: bytes that it would still take, and the message that waits for room.
  std::vector<std::uint64_t> room_;
  std::vector<std::uint32_t> held_;
  Movements movements_;
};

}  // namespace

std::vector<Ticks> lengths_of(const Program& program, const Costs& costs) {
  const Table& table = program.table;
  std::vector<Ticks> result(program.nodes());
  const std::vector<std::uint32_t> block_of = blocks_of(table);
  for (std::uint32_t position = 0; position < table.size(); ++position)
    result[position] = block_of.empty() || block_of[position] == UINT32_MAX
                           ? costs.of(table.ops, table.entries[position])
                           : costs.of_block(table, table.blocks[block_of[position]]);
  for (std::uint32_t n = table.size(); n < program.nodes(); ++n) {
    const Message& m = program.message(NodeId(n));
    const Edge& edge = program.edges[m.edge.value];
    result[n] = costs.message.of(m.payload, edge.source.value, edge.target.value);
  }
  return result;
}

Timeline simulate_shared(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs,
                         const SimulationRules& rules, const Contention& contention) {
  STAVE_CHECK(program.order.size() == program.nodes(), "a program without an order has no price");
  STAVE_CHECK(lengths.size() == program.nodes(), "the lengths do not fit the program");
  return Simulation(program, lengths, costs, rules, contention).run();
}

}  // namespace stave
