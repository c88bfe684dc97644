// Sizes: what a schedule says of the parts it counts, where it gives lists and not bare numbers: the layers of each
// stage, the tokens of each microbatch and slice. What a layer or a token costs is for others.
#pragma once

#include <cstdint>
#include <vector>

namespace stave {

struct Sizes {
  /// Layers of each stage; empty if the file only counts them.
  std::vector<std::uint32_t> stages;
  /// Tokens of each microbatch; empty if the file only counts them.
  std::vector<std::uint32_t> microbatches;
  /// Tokens of each slice: one row for all microbatches, or a row for each; empty if the file only counts them.
  std::vector<std::vector<std::uint32_t>> slices;

  friend bool operator==(const Sizes&, const Sizes&) = default;
};

}  // namespace stave
