// Freezing by parameter group: which weight matrices of a stage get no gradient in a microbatch.
// The ratios are the schedule's (`freeze W(s, m) = r`); here they are rounded to what a stage can skip.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace stave {

/// The weight matrices of a block, each with its bias; a layer norm goes with the matrix that it feeds.
enum class Group : std::uint8_t { Attention, Projection, Widen, Narrow };
inline constexpr std::size_t kGroups = 4;
/// Share of each in the work of a block's W, in twelfths.
inline constexpr std::array<std::uint32_t, kGroups> kGroupParts = {3, 1, 4, 4};
inline constexpr std::uint32_t kBlockParts = 12;

struct FrozenGroups {
  /// Shape: blocks of the stage. Bit g: group g is frozen.
  std::vector<std::uint8_t> blocks;
  /// All is frozen, embedding, final norm and head too.
  bool all = false;
  /// The ratio that is really frozen, of the blocks' weights.
  double ratio = 0;

  bool frozen(std::size_t block, Group group) const {
    return (blocks[block] >> static_cast<unsigned>(group) & 1u) != 0;
  }
};

/// The groups of a stage of `blocks` blocks whose share comes nearest to `ratio` (0 to 1): whole blocks from the first
/// on, then groups of the next. A ratio of 1 freezes the rest of the stage too.
FrozenGroups freeze_groups(double ratio, std::size_t blocks);

/// Freeze ratios of a schedule. Shape: ratio[s * microbatches + m]; empty if nothing is frozen.
struct FreezeRatios {
  std::vector<double> ratio;
  double at(std::uint32_t stage, std::uint32_t microbatch, std::uint32_t microbatches) const {
    return ratio.empty() ? 0 : ratio[static_cast<std::size_t>(stage) * microbatches + microbatch];
  }
  /// Whether it is empty or fits, with every ratio from 0 to 1.
  bool fits(std::uint32_t stages, std::uint32_t microbatches) const;
};

}  // namespace stave
