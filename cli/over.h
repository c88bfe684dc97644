// Over: one schedule under every case of a grid of parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/pipeline.h"
#include "compiler/arguments.h"
#include "core/result.h"

namespace stave {

/// `NAME=FIRST..LAST`, both ends included.
struct Range {
  std::string name;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Most cases of a grid.
inline constexpr std::uint64_t kMaxCases = 1000000;

/// Errors: not of that form, a range that falls, a name given twice, more than kMaxCases in all.
Result<std::vector<Range>> read_ranges(const std::vector<std::string>& texts);

struct GridReport {
  std::uint64_t cases = 0;
  /// By a `require`.
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  /// The failed case with the smallest sum of its values, the first of several; and what is wrong with it.
  std::vector<Argument> smallest;
  std::optional<Built> smallest_built;

  std::uint64_t passed() const { return cases - refused - failed; }
};

/// Builds every case, `arguments` besides; a case fails if it is rejected or an `expect` of it is false.
/// Errors: a parameter that does not exist or is given in both ways.
Result<GridReport> check_grid(const Loaded& loaded, const std::vector<Argument>& arguments,
                              const std::vector<Range>& ranges);

/// "P=3 M=1".
std::string text_of(const std::vector<Argument>& arguments);

}  // namespace stave
