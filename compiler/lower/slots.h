// A pool of slots: numbers handed out for a stretch of time and used again as soon as, and not before, they are free.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "core/ticks.h"

namespace stave {

class SlotPool {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// What became of a slot's latest content: whoever writes it next waits for these.
  struct Slot {
    /// End of the latest reader so far.
    Ticks free_at = 0;
    /// Readers that have not come yet: each message counts, all ops of the device together once.
    std::uint32_t readers = 0;
    /// The op of this device that reads it last.
    std::uint32_t last_reader = kNone;
    /// The op that made the content, and the latest of the messages that carry it away, by the reader that leads it.
    /// None of a slot that receives.
    std::uint32_t producer = kNone;
    std::uint32_t message = kNone;
    std::uint32_t messages = 0;
    /// Of a slot that receives: the reader that leads the message.
    std::uint32_t received = kNone;
    std::uint32_t next_free = kNone;
  };

  /// A slot that is free at `now`, the one that has been so longest, so that a small delay elsewhere does no harm; a
  /// new one if there is none. Its record still tells of the content before. `now` must not fall from call to call.
  std::uint32_t take(Ticks now) {
    while (has_ended(now)) append(next_ended());
    if (first_free_ == kNone) {
      slots_.emplace_back();
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = first_free_;
    first_free_ = slots_[slot].next_free;
    if (first_free_ == kNone) last_free_ = kNone;
    return slot;
  }

  /// One reader has been met that ends at `end`; after the last, the slot is free from the latest end on.
  void read(std::uint32_t slot, Ticks end) {
    Slot& mine = slots_[slot];
    if (end > mine.free_at) mine.free_at = end;
    if (--mine.readers > 0) return;
    const Ending ending(mine.free_at, slot);
    if (in_order_.empty() || in_order_.back() < ending)
      in_order_.push_back(ending);
    else
      others_.push(ending);
  }

  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }

 private:
  using Ending = std::pair<Ticks, std::uint32_t>;

  bool has_ended(Ticks now) const {
    return (!in_order_.empty() && in_order_.front().first <= now) || (!others_.empty() && others_.top().first <= now);
  }
  /// Takes the first out of both.
  std::uint32_t next_ended() {
    std::uint32_t slot = kNone;
    if (others_.empty() || (!in_order_.empty() && in_order_.front() < others_.top())) {
      slot = in_order_.front().second;
      in_order_.pop_front();
    } else {
      slot = others_.top().second;
      others_.pop();
    }
    return slot;
  }
  void append(std::uint32_t slot) {
    slots_[slot].next_free = kNone;
    if (last_free_ == kNone)
      first_free_ = slot;
    else
      slots_[last_free_].next_free = slot;
    last_free_ = slot;
  }

  std::vector<Slot> slots_;
  /// All readers met, not yet at their end. Most are met in the order of their ends, the others wait in a heap.
  std::deque<Ending> in_order_;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> others_;
  std::uint32_t first_free_ = kNone;
  std::uint32_t last_free_ = kNone;
};

}  // namespace stave
