// Movements: messages that move at once over links that they share fairly, each with an equal share of every link it takes
// and at the least of its shares. All arithmetic is on whole numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/rational.h"
#include "core/ticks.h"
#include "scheduler/contention/machine.h"

namespace stave {

class Movements {
 public:
  /// `contention` must outlive it; `links` is how many are shared, 0 for none.
  Movements(const Contention& contention, std::uint32_t links) : contention_(contention), on_link_(links, 0) {}

  /// A message of `length` ticks at full speed begins to move on an edge.
  void add(std::uint32_t message, std::uint32_t edge, Ticks length, Ticks now);
  /// It has moved.
  void remove(std::uint32_t message, Ticks now);

  /// Calls `changed(message, end)` for each whose end is another one than at the last call: the first whole tick by which
  /// all of it has passed, if nothing changes. Cost of each call: O(messages that move).
  template <class Changed>
  void each_changed(Ticks now, const Changed& changed) {
    for (Movement& each : moving_) {
      if (!each.has_changed) continue;
      each.has_changed = false;
      changed(each.message, now + static_cast<Ticks>((each.left + each.rate - 1) / each.rate));
    }
  }

 private:
  struct Movement {
    std::uint32_t message;
    std::uint32_t edge;
    /// In parts of a tick's work, and how many of these a tick does.
    Int128 left;
    Ticks rate;
    Ticks since;
    bool has_changed;
  };
  Ticks rate_of(std::uint32_t edge) const;
  void change(std::uint32_t edge, int by, Ticks now);

  const Contention& contention_;
  /// By link, how many move on it.
  std::vector<std::uint32_t> on_link_;
  std::vector<Movement> moving_;
};

}  // namespace stave
