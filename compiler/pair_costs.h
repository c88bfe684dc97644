// What the overlapped pairs of an order cost: a `cost F with B` line, or the sum of both.
#pragma once

#include <vector>

#include "compiler/evaluate.h"
#include "compiler/schedule.h"
#include "compiler/world.h"

namespace stave {

/// Of every pair in `orders`, by rising first op. The lines are tried after all others: their letters stand for the
/// costs of the whole file. Errors: a diagnostic, and Stop. Cost: an evaluation a pair whose line has indices.
std::vector<PairCost> pair_costs(Evaluator& evaluator, const World& world, const CostSet& costs,
                                 const IdVector<DeviceId, DeviceOrder>& orders);

}  // namespace stave
