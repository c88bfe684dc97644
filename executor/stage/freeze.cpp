#include "executor/stage/freeze.h"

#include <cmath>

namespace stave {

FrozenGroups freeze_groups(double ratio, std::size_t blocks) {
  constexpr std::uint8_t kAll = (1u << kGroups) - 1;
  FrozenGroups result;
  result.blocks.assign(blocks, 0);
  if (ratio >= 1) {
    result.blocks.assign(blocks, kAll);
    result.all = true;
    result.ratio = 1;
    return result;
  }
  double wanted = ratio * kBlockParts * static_cast<double>(blocks);
  std::uint32_t frozen = 0;
  for (std::uint8_t& block : result.blocks) {
    double best_distance = wanted;
    std::uint32_t best_parts = 0;
    for (std::uint8_t groups = 1; groups <= kAll; ++groups) {
      std::uint32_t parts = 0;
      for (std::size_t g = 0; g < kGroups; ++g)
        if ((groups >> g & 1u) != 0) parts += kGroupParts[g];
      const double distance = std::abs(wanted - parts);
      // Of two as near, the one that freezes less.
      if (distance < best_distance || (distance == best_distance && parts < best_parts)) {
        best_distance = distance;
        best_parts = parts;
        block = groups;
      }
    }
    frozen += best_parts;
    wanted -= best_parts;
  }
  if (blocks > 0) result.ratio = frozen / (kBlockParts * static_cast<double>(blocks));
  return result;
}

bool FreezeRatios::fits(std::uint32_t stages, std::uint32_t microbatches) const {
  if (ratio.empty()) return true;
  if (ratio.size() != static_cast<std::size_t>(stages) * microbatches) return false;
  for (double r : ratio)
    if (!(r >= 0 && r <= 1)) return false;
  return true;
}

}  // namespace stave
