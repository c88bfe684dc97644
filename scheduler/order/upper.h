// Upper: lists and `any` of every lane, served by readiness, in simulated time.
// It can run ahead of the moment in which fills are decided (fills.h), and be taken back when a fill changed its future.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "core/ids.h"
#include "core/ticks.h"
#include "scheduler/order/journal.h"
#include "scheduler/order/limits.h"
#include "scheduler/order/ready_set.h"
#include "scheduler/order/units.h"

namespace stave {

/// A unit that was started, with a number that rises over all starts: at one time, what was started first stands first.
struct Started {
  OpId unit;
  Ticks start = 0;
  std::uint64_t number = 0;
};

/// A unit that has ended.
struct Ended {
  OpId unit;
  Ticks time = 0;
};

/// What is still missing before a unit can start. Upper keeps it for its units, Fills for those of fills.
struct Readiness {
  /// When the last message of the needs that have ended arrives.
  Ticks time = 0;
  /// Needs that have not ended.
  std::uint32_t waits = 0;
};

/// Shape: one an op number.
std::vector<Readiness> nothing_ready(const Units& units);

class Upper {
 public:
  Upper(const Units& units, std::vector<Readiness>& readiness);

  /// Time of the next moment, or none if nothing is under way.
  std::optional<Ticks> next_moment();
  /// Runs the next moment: everything that ends or arrives at one time, then whatever can start.
  void step();
  /// Takes back every moment later than `time`; moments at `time` too, unless `keep_same`.
  void take_back(Ticks time, bool keep_same);
  /// Promise that no moment up to `time` is taken back any more.
  void settle(Ticks time) { journal_.settle(time); }

  /// Ends of units in order of time, those of fills too.
  const std::vector<Ended>& ended() const { return ended_; }
  /// What each lane started.
  const std::vector<Started>& started(std::uint32_t lane) const { return lanes_[lane].started; }

  /// Whether the limits of its device admit a unit of a fill now.
  bool fits_fill(OpId unit) const;
  /// A fill runs `unit` from `start` on. Every moment later than `start` must have been taken back if the unit takes of
  /// a limit; moments up to its end are kept.
  void start_fill(OpId unit, Ticks start);
  /// When a lane that is free at `time` has changed to `unit`.
  Ticks set_up(std::uint32_t lane, OpId unit, Ticks time) const;
  /// End of the last fill that was started on a lane.
  Ticks fill_until(std::uint32_t lane) const { return lanes_[lane].fill_until; }
  std::uint64_t next_number() { return number_++; }
  /// Whether, as far as it has run, work that must be done remains at `time`: an op of a list or `any` that has not
  /// started, or ends then or later. Optional ops are no such work.
  bool goes_on(Ticks time) const;

  /// Device `d` has a list whose next op is ready and held back by the device's limit.
  std::optional<OpId> held_by_limit(DeviceId d) const;
  std::int64_t held(DeviceId d, std::size_t limit) const { return limits_[d][limit]->held(); }

 private:
  enum class EventKind : std::uint8_t { End, FillEnd, Ready };
  struct Event {
    Ticks time = 0;
    OpId unit;
    EventKind kind = EventKind::End;
    friend bool operator>(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.unit.value > b.unit.value;
    }
  };
  enum class ChangeKind : std::uint8_t { Popped, Ended, Arrived, Offered, StartedList, StartedAny };
  /// What was done; for Arrived also the time a unit was ready before.
  struct Change {
    ChangeKind kind = ChangeKind::Popped;
    EventKind event = EventKind::End;
    OpId unit;
    Ticks time = 0;
  };
  struct Block {
    const OrderBlock* written = nullptr;
    /// Lists: index of the next op.
    std::uint32_t next = 0;
    /// `any`: what is ready, those that take of a limit apart.
    ReadySet free;
    ReadySet takers;
    /// Once a taker is refused, every later one would be.
    bool uniform_takers = false;
  };
  using Limits = std::array<std::optional<Limit>, Units::kLimits>;
  struct Lane {
    std::vector<Block> blocks;
    std::vector<Started> started;
    OpId running;
    Ticks until = 0;
    Ticks fill_until = 0;
    OpId last_fill;
    bool dirty = false;
  };

  bool is_current(const Event& event) const;
  void apply(const Event& event);
  void end(OpId unit, Ticks time);
  /// What `op`, on `from`, has sent.
  void arrive(const Successor& successor, OpId op, DeviceId from, Ticks time);
  void offer(OpId unit);
  Lane& lane(OpId unit) { return lanes_[units_.info(unit).lane]; }
  const Lane& lane(OpId unit) const { return lanes_[units_.info(unit).lane]; }
  void mark_dirty(std::uint32_t lane);
  void serve(std::uint32_t lane, Ticks time);
  std::optional<OpId> choose(const Limits& limits, const Block& block, Ticks time) const;
  bool is_offered(OpId unit, Ticks time) const;
  bool can_start(OpId unit, Ticks time) const;
  void start(std::uint32_t lane, Block& block, OpId unit, Ticks time);
  void take(OpId unit);
  void untake(OpId unit);
  void undo(const Change& change);
  bool takes(const Limits& limits, OpId unit) const;
  bool fits_list(const Limits& limits, OpId unit) const;
  bool fits_with_room(const Limits& limits, OpId unit) const;
  void note(ChangeKind kind, OpId unit, Ticks time = 0, EventKind event = EventKind::End) {
    if (units_.has_fills()) journal_.note({kind, event, unit, time});
  }

  const Units& units_;
  std::vector<Readiness>& readiness_;
  /// Of units_.lanes().
  std::vector<Lane> lanes_;
  /// By device, whose lanes share them.
  IdVector<DeviceId, Limits> limits_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Ended> ended_;
  std::vector<std::uint32_t> dirty_;
  std::uint64_t number_ = 0;
  /// Units of lists and `any` that are not optional and have not started.
  std::uint32_t waiting_ = 0;
  bool begun_ = false;
  Journal<Change> journal_;
};

}  // namespace stave
