// Replicate: data-parallel groups. A program becomes several copies of itself side by side, each with devices and
// microbatches of its own; what a run then finds are stages that lie on several devices, whose gradients it sums.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"
#include "core/result.h"
#include "core/timeline.h"

namespace stave {

/// Most copies of a program.
inline constexpr std::uint32_t kMaxReplicas = 256;

/// `copies` of `program`: device d of copy c is d + c * devices, microbatch m of it m + c * microbatches.
///
/// Errors: ops that belong to no microbatch, reductions and updates above all: they would stand once for all copies;
/// more ops or devices than a program has. Cost: O(copies * nodes).
Result<Program> replicate(const Program& program, std::uint32_t copies);

/// One value for each node of the program, as many times as there are copies, in the order of its copies' nodes.
std::vector<Ticks> replicate_by_node(const Program& program, const std::vector<Ticks>& values, std::uint32_t copies);

/// The times of one copy, as those of the program itself.
Timeline copy_of(const Program& program, const Timeline& replicated, std::uint32_t copies, std::uint32_t copy);

}  // namespace stave
