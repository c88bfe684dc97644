// Which layers of a model each stage of a schedule holds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "compiler/world.h"
#include "scheduler/model.h"

namespace stave {

/// Layers first .. end - 1 of a stage.
struct LayerRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

/// The ranges of a split: stage s has `blocks[s]` of the layers that are shared out, the first stage the front of the model
/// besides, and the last its end. The sum must be theirs.
std::vector<LayerRange> ranges_of(const Model& model, const std::vector<std::uint32_t>& blocks);

/// The layers of each stage: as many as the schedule's `stages [...]` says, or equally many on each. Where the routes of
/// the microbatches are chains without a stage in common, each chain holds the whole model.
///
/// Shape: one a stage. Errors: none, with a diagnostic: layers that are left over, sizes with another sum.
std::optional<std::vector<LayerRange>> layers_of_stages(const Model& model, const Schedule& schedule, const Routes& routes,
                                                        Diagnostics& sink);

}  // namespace stave
