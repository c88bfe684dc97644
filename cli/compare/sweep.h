// Sweep: the priced makespan of every competitor at every point of a grid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/axis.h"
#include "cli/compare/competitor.h"
#include "scheduler/compare/ranking.h"

namespace stave {

struct Sweep {
  /// Shape: [point][competitor]; points as `coordinates` numbers them. None where a `require` refuses it, it is wrong,
  /// or its work is another.
  std::vector<Values> priced;
  /// Of time; empty if nothing says.
  std::string unit;
  /// Prices that a `require` refused, and that are missing since something is wrong; the first of these.
  std::uint64_t refused = 0;
  std::uint64_t wrong = 0;
  std::size_t first_wrong = 0;
  std::vector<Argument> first_wrong_arguments;
  Diagnostics first_wrong_sink;
};

struct SweepOptions {
  /// Without a standard (standard.h) for costs.
  bool as_written = false;
  /// What has other devices or microbatches than the standard, or trains nothing, has no price.
  bool same_work = false;
};

/// Axes that change nothing but costs run innermost: where the order does not depend on costs it is compiled once for
/// all of them, and priced sixteen sets at a time.
/// Cost: a build for each point of the other axes, and some 300 ns an op for each set of costs, most of it to read the
/// costs anew where they are many. Errors: more than kMaxCases prices; as of `build`.
Result<Sweep> price_sweep(const std::vector<Competitor>& competitors, const std::vector<Axis>& axes,
                          const SweepOptions& options);

}  // namespace stave
