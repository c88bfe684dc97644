// Over: one schedule under every case of a grid of parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/axis.h"
#include "cli/pipeline.h"
#include "compiler/arguments.h"
#include "core/result.h"

namespace stave {

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
                              const std::vector<Axis>& axes);

/// "P=3 M=1".
std::string text_of(const std::vector<Argument>& arguments);

}  // namespace stave
