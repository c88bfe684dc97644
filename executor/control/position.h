// Position: where a rank is in its run, in words, and which rank it waits for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stave {

inline constexpr std::uint32_t kNobody = UINT32_MAX;

struct Position {
  Position() = default;
  Position(std::string words, std::uint32_t rank = kNobody) : doing(std::move(words)), waits_for(rank) {}

  /// A noun: "F(1, 3) on device 1, step 4", "the wait before B(0, 0) on device 0, step 1"; empty if it is not known.
  std::string doing;
  std::uint32_t waits_for = kNobody;
};

/// Of all ranks, by rank.
struct Whereabouts {
  std::vector<Position> ranks;
  /// No rank has asked in the seconds before: whoever has several ranks ask prints this once.
  bool is_first = false;
};

}  // namespace stave
