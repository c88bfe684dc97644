// Own: every edge has a link of its own.
#pragma once

#include <cstdint>

#include "core/ticks.h"
#include "scheduler/contention/machine.h"

namespace stave {

class Own {
 public:
  static constexpr bool kWaits = false;
  static constexpr bool kPlansAgain = false;

  explicit Own(const Contention&) {}

  template <class Go>
  void ask(std::uint32_t message, std::uint32_t, const Go& go) {
    go(message);
  }
  template <class Plan>
  void move(std::uint32_t message, std::uint32_t, Ticks length, Ticks now, const Plan& plan) {
    plan(message, now + length);
  }
  template <class Go, class Plan>
  void leave(std::uint32_t, std::uint32_t, Ticks, const Go&, const Plan&) {}
};

}  // namespace stave
