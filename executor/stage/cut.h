// Cuts tokens into slices and blocks into stages, by the ratio of the sizes that a schedule gives.
#pragma once

#include <cstdint>
#include <vector>

namespace stave {

/// `total` cut into `parts`, as `sizes` are to each other, or all alike if there are not as many; each part is at least
/// 1, and `total` at least `parts`.
std::vector<std::uint32_t> cut_by_ratio(std::uint32_t total, std::uint32_t parts,
                                        const std::vector<std::uint32_t>& sizes);

}  // namespace stave
