// Placement: the device of every stage, which may depend on the microbatch.
#pragma once

#include <cstdint>
#include <vector>

namespace stave {

struct Placement {
  /// Shape: [stage], or [stage * microbatches + microbatch] if it depends on the microbatch.
  std::vector<std::uint16_t> device;
  /// 0 if the place does not depend on the microbatch.
  std::uint32_t microbatches = 0;

  bool by_microbatch() const { return microbatches > 0; }
  std::uint16_t of(std::uint32_t stage, std::uint32_t microbatch) const {
    return device[by_microbatch() ? std::size_t(stage) * microbatches + microbatch : stage];
  }
};

}  // namespace stave
