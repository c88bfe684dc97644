// What every op needs, from the `receives` and `after` of the declarations, op by op.
#pragma once

#include "compiler/evaluate.h"
#include "compiler/schedule.h"
#include "compiler/world.h"

namespace stave {

/// Most dependencies of a schedule.
inline constexpr std::size_t kMaxNeeds = std::size_t(1) << 28;

/// Shape: a row for each op number. Rows are empty for fused ops (their parts need what they need), for ops that do not
/// exist, and for optional kinds that no device's order has (World::runs). Cost: about 5 ns a dependency whose indices are those of the op
/// plus or less a number; others are evaluated. Errors: a cycle of
/// needs, an index that is not whole, too many; a diagnostic, and Stop.
Rows<Dependency> find_needs(Evaluator& evaluator, const World& world);

/// The declaration that makes `op` need `needed`; not valid if none does.
Span find_need(Evaluator& evaluator, const World& world, OpId op, OpId needed);

}  // namespace stave
