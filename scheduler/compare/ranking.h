// Ranking: who is first, who passes whom from one level or point to the next, and where along a sweep. Lower is better.
// What the values are, and how they are told, is the command line's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/rational.h"

namespace stave {

/// One value a competitor; none of one that does not take part.
using Values = std::vector<std::optional<Rational>>;

/// From 1; equal values share a rank, and the next one is as many below. 0: takes no part.
std::vector<std::uint32_t> ranks_of(const Values& values);

/// Two competitors whose order is another after than before.
struct Turn {
  /// Strictly better after.
  std::size_t winner = 0;
  std::size_t loser = 0;
  /// They were equal before; else the winner was behind.
  bool were_equal = false;
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// Of those that have both values; by rising value of the winner, then where the loser falls furthest behind. Cost:
/// O(n^2 log n).
std::vector<Turn> turns_between(const Values& before, const Values& after);

/// Two competitors change places along a row of points.
struct Crossing {
  /// Better at the point `to`; behind at the point `from`.
  std::size_t winner = 0;
  std::size_t loser = 0;
  /// `from` < `to`. At the points between the two, if there are any, they are equal, or one has no value.
  std::size_t from = 0;
  std::size_t to = 0;
  friend bool operator==(const Crossing&, const Crossing&) = default;
};

/// Shape: points[i] are the values at point i. By rising `to`, then by winner and loser. Cost: O(points * n^2).
std::vector<Crossing> crossings_of(const std::vector<Values>& points);

}  // namespace stave
