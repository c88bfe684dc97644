// Updates: the reductions and optimizer steps that stand in a table, and the versions of weights between them.
// Where none stand, a step ends with them; what they compute is the stages'.
#pragma once

#include "core/program.h"
#include "core/result.h"
#include "executor/plan.h"

namespace stave {

/// Completes a plan that knows its partition: which reductions meet, which versions of a stage's weights its ops read
/// and where a device keeps them (no more than are still read).
///
/// Errors: gradients that no update uses, or that no reduction sums over the replicas of their stage; replicas that are
/// not updated alike; a version that the device of its reader has not made. Cost: O(ops).
Result<void> find_updates(const Program& program, Plan& plan);

}  // namespace stave
