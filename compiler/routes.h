// Routes: which stages each microbatch visits, and in which order, where the file says so with `route`.
#pragma once

#include <cstdint>
#include <vector>

namespace stave {

struct Routes {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// 0 where every microbatch visits every stage, rising.
  std::uint32_t microbatches = 0;
  std::uint32_t stages = 0;
  /// The stages before and after one on a microbatch's route; kNone at its ends. Shape: [stage * microbatches + m].
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
  std::vector<bool> visits;

  bool given() const { return microbatches > 0; }
  bool visited(std::uint32_t stage, std::uint32_t m) const {
    return !given() || visits[std::size_t(stage) * microbatches + m];
  }
  /// The stage `steps` further on (or back, below 0), or kNone.
  std::uint32_t step(std::uint32_t stage, std::uint32_t m, std::int64_t steps) const {
    for (; steps != 0 && stage != kNone; steps += steps > 0 ? -1 : 1)
      stage = (steps > 0 ? after : before)[std::size_t(stage) * microbatches + m];
    return stage;
  }
};

class Evaluator;

/// Evaluates `route` for every microbatch. Errors: a stage that does not exist or comes twice, a route of no stage, a
/// stage that no microbatch visits; a diagnostic, and Stop.
Routes find_routes(Evaluator& evaluator);

}  // namespace stave
