// Reach: which units of a device must have run before another unit. Within a class they are a
// prefix, so a count says it.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/bounds/instance.h"

namespace stave::bounds {

class Reach {
 public:
  /// `order` is a topological order of `instance`. Cost: O(arcs * classes).
  Reach(const Instance& instance, const std::vector<std::uint32_t>& order);

  /// How many units, the first ones, of each class of the unit's device are ancestors of it, itself left out.
  /// Shape: as Instance::classes_of of its device.
  const std::uint32_t* before(std::uint32_t unit) const { return &before_[at_[unit]]; }
  /// The first place of each class that is a descendant, itself left out; the size of the class if none is.
  const std::uint32_t* after(std::uint32_t unit) const { return &after_[at_[unit]]; }
  /// That of the instance with time running backwards.
  Reach reversed(const Instance& instance) const;
  /// Place of a class among those of its device.
  std::uint32_t column(std::uint32_t a_class) const { return column_[a_class]; }

 private:
  std::vector<std::size_t> at_;
  std::vector<std::uint32_t> column_;
  std::vector<std::uint32_t> before_;
  std::vector<std::uint32_t> after_;
};

/// Arcs into each unit, the first `count` of the instance. Shape: arcs[first[unit]] .. arcs[first[unit + 1] - 1].
struct ArcsInto {
  explicit ArcsInto(const Instance& instance) : ArcsInto(instance, instance.arcs.size()) {}
  ArcsInto(const Instance& instance, std::size_t count);
  std::vector<std::uint32_t> first;
  std::vector<std::pair<std::uint32_t, Ticks>> from;
};

}  // namespace stave::bounds
