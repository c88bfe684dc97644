// How much of W's time freezing really saves: what the schedule asks for, what parameter groups make of it, and what was
// measured. Freezing itself is in freeze.h and the stages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/program.h"
#include "core/ticks.h"
#include "executor/stage/transformer.h"

namespace stave {

/// Of the frozen W (or B) of a stage, mean shares: 0 to 1.
struct FrozenTime {
  StageId stage;
  /// How many are frozen, and how many there are.
  std::uint32_t frozen = 0;
  std::uint32_t ops = 0;
  /// As the schedule has them; of the blocks' weights, rounded to groups; of the multiply-adds of the whole W, the head's too.
  double asked = 0;
  double groups = 0;
  double work = 0;
  /// By how much they were shorter than the W of the same stage that are not frozen, if there are any; else than those of
  /// all stages by their multiply-adds. Nothing where B has the W in it, or where all are frozen.
  std::optional<double> measured;
};

/// Stages that freeze something, by rising number. `lengths` has one for every position, the shortest of several steps
/// for one; `model` trains the program. Ops are compared by the length of a token. Cost: O(ops).
std::vector<FrozenTime> frozen_times(const Program& program, const std::vector<Ticks>& lengths,
                                     const Transformer& model);

}  // namespace stave
