// Prices: costs in place of those of a schedule's own lines, as a costs file or a model on a cluster has them.
// The seam by which the compiler asks for them when it knows what there is to price; who makes them is above it.
#pragma once

#include <string>

#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "compiler/world.h"

namespace stave {

class Prices {
 public:
  virtual ~Prices() = default;
  /// Replaces in `costs`, which the schedule's own lines made, what it has a price for; an op left without a duration
  /// must not run. The costs of a command line's `--cost` come after it. Of `schedule` its counts, sizes, ops and their
  /// devices are set. Errors: false, with a diagnostic in `sink`.
  virtual bool apply(const Schedule& schedule, const World& world, CostSet& costs, Diagnostics& sink) const = 0;
};

}  // namespace stave
