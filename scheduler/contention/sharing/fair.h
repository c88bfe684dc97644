// Fair: messages move at once, each with an equal share of every link it takes and at the least of its shares. All
// arithmetic is on whole numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/rational.h"
#include "core/ticks.h"
#include "scheduler/contention/machine.h"

namespace stave {

class Fair {
 public:
  static constexpr bool kWaits = false;
  static constexpr bool kPlansAgain = true;

  /// `contention` must outlive it.
  explicit Fair(const Contention& contention) : contention_(contention), on_link_(contention.links, 0) {}

  template <class Go>
  void ask(std::uint32_t message, std::uint32_t, const Go& go) {
    go(message);
  }
  template <class Plan>
  void move(std::uint32_t message, std::uint32_t edge, Ticks length, Ticks now, const Plan& plan) {
    add(message, edge, length, now);
    plan_changed(now, plan);
  }
  template <class Go, class Plan>
  void leave(std::uint32_t message, std::uint32_t, Ticks now, const Go&, const Plan& plan) {
    remove(message, now);
    plan_changed(now, plan);
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

  /// Each ends at the first whole tick by which all of it has passed, if nothing changes. Cost: O(messages that move).
  template <class Plan>
  void plan_changed(Ticks now, const Plan& plan) {
    for (Movement& each : moving_) {
      if (!each.has_changed) continue;
      each.has_changed = false;
      plan(each.message, now + static_cast<Ticks>((each.left + each.rate - 1) / each.rate));
    }
  }

  void add(std::uint32_t message, std::uint32_t edge, Ticks length, Ticks now);
  void remove(std::uint32_t message, Ticks now);
  Ticks rate_of(std::uint32_t edge) const;
  void change(std::uint32_t edge, int by, Ticks now);

  const Contention& contention_;
  /// By link, how many move on it.
  std::vector<std::uint32_t> on_link_;
  std::vector<Movement> moving_;
};

}  // namespace stave
