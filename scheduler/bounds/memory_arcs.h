// Memory arcs: what must have ended before a unit fits into the limits of its device, in every order.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/bounds/instance.h"
#include "scheduler/bounds/reach.h"

namespace stave::bounds {

/// What a unit still needs others to give back before it starts, under one limit.
struct Shortage {
  /// At least this much, from units that are not its ancestors; none if not above 0.
  std::int64_t need = 0;
  /// How much class `i` of the device, by column, can give back for it with its units from `from` to `to`.
  struct Giver {
    std::uint32_t a_class = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  std::vector<Giver> givers;
};

class MemoryRule {
 public:
  MemoryRule(const Instance& instance, const Reach& reach, const MemoryLimit& limit)
      : instance_(instance), reach_(reach), limit_(limit) {}

  /// `unit` is on the device of the limit. Cost: O(classes of the device).
  Shortage shortage(std::uint32_t unit) const;
  /// What the units of a class from place `from` to before `to` give back for what ancestors of `unit` have taken.
  std::int64_t given(std::uint32_t unit, std::uint32_t a_class, std::uint32_t from, std::uint32_t to) const;

 private:
  const Instance& instance_;
  const Reach& reach_;
  const MemoryLimit& limit_;
};

/// Adds an arc to every unit from each that must have given back before it: without that one, and so without those
/// that come after it, all others together do not give enough. True if there was a new one.
bool add_memory_arcs(Instance& instance, const Reach& reach);

}  // namespace stave::bounds
