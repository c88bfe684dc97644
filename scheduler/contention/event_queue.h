// Event queue: what ends at which time, for a simulation whose time only goes on.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/ticks.h"

namespace stave {

/// Events at one time come out in an order of their own, the same in every run: what they do must not depend on it.
///
/// A radix heap: a bucket for each bit in which a time may first differ from now, so that an event moves to a lower one at
/// most once a bit. Source: Ahuja, Mehlhorn, Orlin, Tarjan, Faster Algorithms for the Shortest Path Problem, JACM 1990.
template <class Event>
class EventQueue {
 public:
  Ticks now() const { return now_; }

  /// `event.time` must not be before now. Cost: a few ns.
  void push(const Event& event) {
    const int bucket = bucket_of(event.time);
    buckets_[bucket].push_back(event);
    filled_ |= std::uint64_t{1} << bucket;
  }

  /// There is one whose time is now.
  bool is_due() const { return !buckets_[0].empty(); }
  Event take_due() {
    const Event event = buckets_[0].back();
    buckets_[0].pop_back();
    return event;
  }

  /// Goes on to the next event; false if there is none. None may be due.
  bool advance() {
    filled_ &= ~std::uint64_t{1};
    if (filled_ == 0) return false;
    const int lowest = std::countr_zero(filled_);
    filled_ &= filled_ - 1;
    std::vector<Event>& events = buckets_[lowest];
    now_ = std::ranges::min_element(events, {}, &Event::time)->time;
    for (const Event& each : events) push(each);
    events.clear();
    return true;
  }

 private:
  // Times are not negative, so that 63 bits may differ.
  int bucket_of(Ticks time) const { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(time ^ now_))); }

  Ticks now_ = 0;
  std::array<std::vector<Event>, 64> buckets_;
  std::uint64_t filled_ = 0;
};

}  // namespace stave
