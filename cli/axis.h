// Axis: the values of `--over NAME=VALUES`, by which a grid of cases is tried or a sweep priced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/rational.h"
#include "core/result.h"

namespace stave {

struct Axis {
  std::string name;
  std::vector<Rational> values;
};

/// Most cases of a grid.
inline constexpr std::uint64_t kMaxCases = 1000000;

/// Each of the form NAME=ITEM,ITEM,... where an item is a number (`8`, `0.5`, `1/3`), a range with both ends included
/// (`1..12`), or one with a step (`8..64..8`).
/// Errors: not of that form, a range that falls, a step that does not rise, a name or a value given twice, more than
/// kMaxCases in all: nothing is made of a list that is too long.
Result<std::vector<Axis>> read_axes(const std::vector<std::string>& texts);

/// Cases of the grid; 1 without axes.
std::uint64_t cases_of(const std::vector<Axis>& axes);

/// The number of the value of each axis in a case, the last axis the fastest.
std::vector<std::size_t> coordinates(const std::vector<Axis>& axes, std::uint64_t number);

/// "0.5" where that is exact, else "1/3".
std::string value_text(Rational value);

}  // namespace stave
