// Heads: the earliest time at which each unit can start, in any order, from arcs, from the machine it shares with its
// ancestors, and from memory that others must have given back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/bounds/instance.h"
#include "scheduler/bounds/jackson.h"
#include "scheduler/bounds/memory_arcs.h"
#include "scheduler/bounds/reach.h"

namespace stave::bounds {

class Heads {
 public:
  /// Nothing is known of when such a unit starts.
  static constexpr Ticks kUnknown = INT64_MIN;

  /// `instance` with its memory arcs, and their reach; both must outlive it.
  Heads(const Instance& instance, const Reach& reach, const std::vector<std::uint32_t>& order);

  /// By unit, from the moment at which all devices may start.
  std::vector<Ticks> from_start() const;
  /// By unit, from the start of the first op that counts on `device`: at least 0 for the units there, kUnknown for
  /// those that need none of them. Of choices only those between two classes, and none where they are very many.
  std::vector<Ticks> from_device(std::uint32_t device) const;

 private:
  /// A unit that can only start once some of several classes have given back enough.
  struct Choice {
    const MemoryLimit* limit = nullptr;
    Shortage shortage;
  };

  enum class Choices : std::uint8_t { None, OfTwo, All };
  void propagate(std::vector<Ticks>& heads, Choices choices) const;
  Ticks of_two(std::uint32_t unit, const Choice& choice, const std::vector<Ticks>& heads, const Busy& ancestors) const;
  Ticks of_several(std::uint32_t unit, const Choice& choice, const std::vector<Ticks>& heads) const;

  const Instance& instance_;
  const Reach& reach_;
  const std::vector<std::uint32_t>& order_;
  const ArcsInto into_;
  /// By unit, the row of `choices_` or none; few units have several.
  std::vector<std::vector<Choice>> choices_;
  bool has_choices_ = false;
  /// Sets of two classes to look at in one round, at most.
  std::uint64_t sets_of_two_ = 0;
};

}  // namespace stave::bounds
