// Placement: the device of every stage, which may depend on the microbatch; then a stage has a replica on each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/rows.h"

namespace stave {

struct Placement {
  /// Shape: [stage], or [stage * microbatches + microbatch] if it depends on the microbatch.
  std::vector<std::uint16_t> device;
  /// 0 if the place does not depend on the microbatch.
  std::uint32_t microbatches = 0;
  /// The devices that have each stage for some microbatch, rising. Shape: [stage].
  Rows<std::uint16_t> replicas;
  /// The longest of its rows.
  std::uint32_t most_replicas = 1;

  bool by_microbatch() const { return microbatches > 0; }
  std::uint16_t of(std::uint32_t stage, std::uint32_t microbatch) const {
    return device[by_microbatch() ? std::size_t(stage) * microbatches + microbatch : stage];
  }
  /// Which replica of a stage a device has; kNone if it has none.
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t replica(std::uint32_t stage, std::uint32_t on) const {
    const auto row = replicas[stage];
    const auto found = std::lower_bound(row.begin(), row.end(), on);
    return found != row.end() && *found == on ? static_cast<std::uint32_t>(found - row.begin()) : kNone;
  }
};

}  // namespace stave
