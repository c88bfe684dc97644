// Fills: what `fill` blocks start, and when: only where the blocks above would leave the device idle until its end.
// Walks real time; asks Upper to run as far ahead as the op under decision is long.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "core/ids.h"
#include "core/ticks.h"
#include "scheduler/order/ready_set.h"
#include "scheduler/order/units.h"
#include "scheduler/order/upper.h"

namespace stave {

class Fills {
 public:
  Fills(const Units& units, std::vector<Readiness>& readiness, Upper& upper);

  /// Runs lists, `any` and fills to their end, or until nothing can start any more.
  void run();
  /// What each lane filled, in order.
  const std::vector<Started>& started(std::uint32_t lane) const { return lanes_[lane].started; }

 private:
  struct Block {
    const OrderBlock* written = nullptr;
    ReadySet ready;
    Ticks shortest = kMaxTicks;
  };
  struct Lane {
    /// By block of the schedule; those that are no fill stay empty.
    std::vector<Block> blocks;
    std::uint32_t ready = 0;
    std::vector<Started> started;
    /// Index of the first op of Upper that has not ended now.
    std::size_t next_upper = 0;
    bool candidate = false;
  };
  struct Arrival {
    Ticks time = 0;
    OpId unit;
    friend bool operator>(const Arrival& a, const Arrival& b) {
      return a.time != b.time ? a.time > b.time : a.unit.value > b.unit.value;
    }
  };

  std::optional<Ticks> next_time();
  void hear_of_ends(Ticks now);
  void offer(OpId unit);
  void consider(std::uint32_t lane);
  bool idle(std::uint32_t lane, Ticks now);
  void decide(std::uint32_t lane, Ticks now);
  bool stays_idle(std::uint32_t lane, OpId unit, Ticks until);
  bool takes(OpId unit) const;
  bool is_too_late(OpId unit, Ticks end) const;

  const Units& units_;
  std::vector<Readiness>& readiness_;
  Upper& upper_;
  /// Of units_.lanes().
  std::vector<Lane> lanes_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  /// Index into Upper::ended of the first end not heard of.
  std::size_t heard_ = 0;
  std::vector<std::uint32_t> candidates_;
  /// Units of fills that are not optional: those that have not started, and the latest end of the others.
  std::uint32_t waiting_ = 0;
  Ticks latest_ = 0;
};

}  // namespace stave
