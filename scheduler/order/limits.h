// Limits: what the ops of a device hold, and whether one more still leaves room for those that must come.
// One Limit is one `limit` line of one device; docs/language.md has the rule (order by readiness).
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/order/ready_set.h"

namespace stave {

/// Largest key of the microbatches before a given one, while keys change by prefixes. All costs O(log n).
class PrefixMax {
 public:
  static constexpr std::int64_t kLowest = -(std::int64_t(1) << 60);

  explicit PrefixMax(std::uint32_t n);

  /// Adds `earlier` to the keys 0 .. i - 1 and `own` to key i.
  void add(std::uint32_t i, std::int64_t earlier, std::int64_t own);
  /// Largest of the keys 0 .. i - 1; at most kLowest / 2 if there is none that counts.
  std::int64_t before(std::uint32_t i) const;

 private:
  /// The largest key below a node, and what was added to all of them, which `largest` has in it.
  struct Node {
    std::int64_t largest = 0;
    std::int64_t added = 0;
  };

  std::uint32_t leaves_ = 1;
  /// Children of node n are 2n and 2n + 1; key i is node leaves_ + i.
  std::vector<Node> nodes_;
};

/// What one limit of a device counts. Unit: whole parts of the limit's own measure (activations, or a common divisor of
/// all sizes).
class Limit {
 public:
  /// `rest[m]`: what the ops of microbatch m on this device will still take.
  /// With `leave_room` false, no block of the device leaves room, and the index of microbatches is not built.
  Limit(std::int64_t most, std::vector<std::int64_t> rest, bool leave_room);

  /// Lists obey the limit alone.
  bool fits(std::int64_t size) const { return size == 0 || held_ + size <= most_; }
  /// `any` and `fill` also leave room: for what the oldest microbatch with more to take still needs, and so that each
  /// later one still fits once those before it have given back.
  bool fits_with_room(std::uint32_t microbatch, std::int64_t size) const;

  /// Microbatch kNobody: an op without one.
  void take(std::uint32_t microbatch, std::int64_t size);
  void untake(std::uint32_t microbatch, std::int64_t size);
  void give(std::uint32_t microbatch, std::int64_t size);
  void ungive(std::uint32_t microbatch, std::int64_t size) { give(microbatch, -size); }

  std::int64_t held() const { return held_; }
  std::int64_t most() const { return most_; }

  static constexpr std::uint32_t kNobody = UINT32_MAX;

 private:
  std::int64_t most_ = 0;
  std::int64_t held_ = 0;
  std::vector<std::int64_t> rest_;
  /// Microbatches with more to take here.
  ReadySet open_;
  /// Key of an open microbatch: what it and all later ones hold, and what it will still take.
  PrefixMax keys_;
  bool leave_room_ = false;
};

}  // namespace stave
