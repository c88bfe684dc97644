// The simulation with contention, for one rule of sharing: of simulate_shared.h alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/rational.h"
#include "core/check.h"
#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/contention/event_queue.h"
#include "scheduler/contention/jobs.h"
#include "scheduler/contention/machine.h"
#include "scheduler/contention/rules.h"
#include "scheduler/costs.h"
#include "scheduler/order/ready_set.h"

namespace stave {

template <class Links>
class Simulation {
 public:
  Simulation(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs, const SimulationRules& rules,
             const Contention& contention)
      : program_(program),
        costs_(costs),
        rules_(rules),
        contention_(contention),
        jobs_(program, lengths, rules),
        links_(contention),
        times_(jobs_.end()),
        ready_messages_(jobs_.end()),
        asked_(Links::kWaits ? program.messages.size() : 0),
        longer_(Links::kPlansAgain ? program.messages.size() : 0),
        versions_(Links::kPlansAgain || contention.slows_down() ? jobs_.end() : 0),
        computing_(program.table.devices()),
        moving_(program.table.devices(), 0),
        came_(rules.buffered_bytes ? program.messages.size() : 0),
        state_(rules.buffered_bytes ? jobs_.end() : 0),
        room_(program.edges.size(), rules.buffered_bytes.value_or(0)),
        held_(program.edges.size(), Jobs::kNone) {}

  // At each moment all that ends, and all ops that start; then the messages that may begin, by the issue order, and after
  // each what that ends or starts at once.
  Timeline run() {
    for (std::uint32_t job = 0; job < jobs_.end(); ++job)
      if (jobs_.is_job(job) && jobs_.pending(job) == 0) begin(job);
    while (true) {
      if (events_.is_due()) {
        take(events_.take_due());
      } else if (const std::uint32_t message = ready_messages_.first(); message != ReadySet::kNone) {
        ready_messages_.erase(message);
        ask(message);
      } else if (events_.advance()) {
        now_ = events_.now();
      } else {
        break;
      }
    }
    STAVE_CHECK(done_ == jobs_.count(), "a simulation with contention does not finish");
    return timeline();
  }

 private:
  /// An op ends, or a message has moved and its links are free. Where that may come sooner or later than it seemed, only
  /// the event with the newest version counts.
  struct Event {
    /// In place of a version: an op may start, for its setup is over; or a message has come, for its latency is.
    static constexpr std::uint32_t kWaitIsOver = UINT32_MAX;

    Ticks time = 0;
    std::uint32_t job = 0;
    std::uint32_t version = 0;
  };

  void take(const Event& event) {
    const bool is_message = jobs_.is_message(event.job);
    if (event.version == Event::kWaitIsOver) return is_message ? arrive(event.job) : start_op(event.job);
    if (event.version == version(event.job)) return is_message ? end_move(event.job) : end_op(event.job);
  }

  std::uint32_t version(std::uint32_t job) const { return versions_.empty() ? 0 : versions_[job]; }
  void plan(std::uint32_t job, Ticks end) {
    events_.push({end, job, versions_.empty() ? 0 : ++versions_[job]});
  }

  const Edge& edge_of(std::uint32_t message) const { return program_.edges[jobs_.edge(message)]; }
  std::uint32_t number_of(std::uint32_t message) const { return program_.message_of(jobs_.first_node(message)).value; }

  Timeline timeline() {
    Timeline result;
    result.ticks_per_unit = costs_.ticks_per_unit;
    result.unit = costs_.unit;
    result.start.resize(program_.nodes());
    result.end.resize(program_.nodes());
    for (std::uint32_t node = 0; node < program_.nodes(); ++node) {
      const Times& times = times_[jobs_.job_of(node)];
      result.start[node] = times.start;
      result.end[node] = times.end;
    }
    result.asked = std::move(asked_);
    result.longer = std::move(longer_);
    result.came = std::move(came_);
    return result;
  }

  // --- ops

  struct Computing {
    std::uint32_t job = Jobs::kNone;
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
    note_start(job);
    const std::uint32_t device = jobs_.device(job);
    if (!slows(device) || !jobs_.lanes().computes(jobs_.first_node(job).value)) return plan(job, now_ + jobs_.length(job));
    computing_[device] = {job, static_cast<Int128>(jobs_.length(job)) * contention_.slowdown[device], now_};
    plan_end(device);
  }

  void plan_end(std::uint32_t device) {
    const Computing& mine = computing_[device];
    const Ticks per_tick = speed(device);
    plan(mine.job, now_ + static_cast<Ticks>((mine.left + per_tick - 1) / per_tick));
  }

  // Before the speed of a device changes.
  void note_computed(std::uint32_t device) {
    Computing& mine = computing_[device];
    if (mine.job == Jobs::kNone) return;
    mine.left = std::max<Int128>(0, mine.left - static_cast<Int128>(now_ - mine.since) * speed(device));
    mine.since = now_;
  }

  void end_op(std::uint32_t job) {
    Computing& computing = computing_[jobs_.device(job)];
    if (computing.job == job) computing.job = Jobs::kNone;
    finish(job);
  }

  void note_start(std::uint32_t job) {
    jobs_.prefetch(job);
    times_[job].start = now_;
  }

  void finish(std::uint32_t job) {
    ++done_;
    times_[job].end = now_;
    jobs_.each_after_end(job, [&](const Jobs::After& after) { release(after); });
  }

  void release(const Jobs::After& after) {
    if (after.frees_slot) return slot_free(after.job);
    if (--jobs_.pending(after.job) == 0) begin(after.job);
  }

  // All that a job needs has ended.
  void begin(std::uint32_t job) {
    if (jobs_.is_message(job)) return ready_messages_.insert(job);
    if (const Ticks ready = after_setups(job); ready > now_) return events_.push({ready, job, Event::kWaitIsOver});
    start_op(job);
  }

  // When its lanes have changed over to it.
  Ticks after_setups(std::uint32_t job) const {
    Ticks result = now_;
    if (costs_.setups.empty()) return result;
    jobs_.each_position(job, [&](std::uint32_t position) {
      const std::uint32_t before = jobs_.lanes().previous(position);
      if (before == Lanes::kNone || jobs_.job_of(before) == job) return;
      result = std::max(result, times_[jobs_.job_of(before)].end + costs_.setup(program_.table, before, position));
    });
    return result;
  }

  // --- messages

  void ask(std::uint32_t message) {
    if (rules_.buffered_bytes && !may_leave(message)) return;
    if constexpr (Links::kWaits) asked_[number_of(message)] = now_;
    links_.ask(message, jobs_.edge(message), go());
  }

  auto go() {
    return [this](std::uint32_t message) { start_move(message); };
  }
  auto plan() {
    return [this](std::uint32_t message, Ticks end) { plan(message, end); };
  }

  /// In which it holds no link.
  Ticks latency(std::uint32_t message) const {
    if (contention_.latency.empty()) return 0;
    return std::min(jobs_.length(message), contention_.latency[jobs_.edge(message)]);
  }
  Ticks moves(std::uint32_t message) const { return jobs_.length(message) - latency(message); }

  void start_move(std::uint32_t message) {
    note_start(message);
    if (const std::uint32_t next = jobs_.after_start(message); next != Jobs::kNone) release({next, false, false});
    change_moving(message, 1);
    links_.move(message, jobs_.edge(message), moves(message), now_, plan());
  }

  // A device's first message that moves slows it down, its last speeds it up.
  void change_moving(std::uint32_t message, int by) {
    if (contention_.slowdown.empty()) return;
    const Edge& edge = edge_of(message);
    for (const std::uint32_t device : {edge.source.value, edge.target.value}) {
      if (!slows(device)) continue;
      const bool changes = moving_[device] == (by > 0 ? 0 : 1);
      if (changes) note_computed(device);
      moving_[device] += by;
      if (changes && computing_[device].job != Jobs::kNone) plan_end(device);
    }
  }

  void end_move(std::uint32_t message) {
    change_moving(message, -1);
    if constexpr (Links::kPlansAgain) longer_[number_of(message)] = now_ - times_[message].start - moves(message);
    links_.leave(message, jobs_.edge(message), now_, go(), plan());
    const Ticks rest = latency(message);
    if (rest == 0) return arrive(message);
    events_.push({now_ + rest, message, Event::kWaitIsOver});
  }

  void arrive(std::uint32_t message) {
    if (!rules_.buffered_bytes) return finish(message);
    // What waits for the sender's slot goes on: the data has left it.
    came_[number_of(message)] = now_;
    state_[message].has_come = true;
    jobs_.each_after_end(message, [&](const Jobs::After& each) {
      if (each.is_at_source) release(each);
    });
    if (jobs_.slot_pending(message) == 0) deliver(message);
  }

  // --- buffers

  bool may_leave(std::uint32_t message) {
    if (jobs_.slot_pending(message) == 0) return true;
    std::uint64_t& room = room_[jobs_.edge(message)];
    if (size_of(message) <= room) {
      room -= size_of(message);
      state_[message].is_buffered = true;
      return true;
    }
    held_[jobs_.edge(message)] = message;
    return false;
  }

  void slot_free(std::uint32_t message) {
    if (--jobs_.slot_pending(message) != 0) return;
    if (state_[message].has_come) return deliver(message);
    std::uint32_t& held = held_[jobs_.edge(message)];
    if (held == message) ready_messages_.insert(std::exchange(held, Jobs::kNone));
  }

  std::uint64_t size_of(std::uint32_t message) const {
    return contention_.bytes.empty() ? 0 : contention_.bytes[number_of(message)];
  }

  void deliver(std::uint32_t message) {
    ++done_;
    times_[message].end = now_;
    jobs_.each_after_end(message, [&](const Jobs::After& each) {
      if (!each.is_at_source) release(each);
    });
    if (!state_[message].is_buffered) return;
    const std::uint32_t edge = jobs_.edge(message);
    room_[edge] += size_of(message);
    if (held_[edge] != Jobs::kNone) ready_messages_.insert(std::exchange(held_[edge], Jobs::kNone));
  }

  struct Times {
    Ticks start = 0;
    Ticks end = 0;
  };
  /// Of a message that may be buffered: what has become of it.
  struct State {
    bool has_come = false;
    bool is_buffered = false;
  };

  const Program& program_;
  const Costs& costs_;
  const SimulationRules& rules_;
  const Contention& contention_;
  Jobs jobs_;
  Links links_;
  EventQueue<Event> events_;
  Ticks now_ = 0;
  std::uint32_t done_ = 0;
  /// By job.
  std::vector<Times> times_;
  /// That may begin now.
  ReadySet ready_messages_;
  /// By message, as the timeline has them.
  std::vector<Ticks> asked_;
  std::vector<Ticks> longer_;
  /// By job; empty where nothing is planned twice.
  std::vector<std::uint32_t> versions_;
  // By device.
  std::vector<Computing> computing_;
  std::vector<std::uint32_t> moving_;
  // Of buffers: by message, by job, and by edge bytes that it would still take, and the message that waits for room.
  std::vector<Ticks> came_;
  std::vector<State> state_;
  std::vector<std::uint64_t> room_;
  std::vector<std::uint32_t> held_;
};

}  // namespace stave
