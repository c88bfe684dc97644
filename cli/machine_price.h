// MachinePrice: what a schedule takes on a machine, and nothing else of it, for searches that ask many times.
#pragma once

#include <optional>
#include <vector>

#include "compiler/arguments.h"
#include "compiler/compile.h"
#include "compiler/diagnostics.h"
#include "scheduler/model_prices.h"

namespace stave {

/// Microseconds of the makespan. None if it cannot run so, for want of memory or of a path or since it is wrong; why is in
/// `sink`.
std::optional<double> makespan_on(const ModelPrices& machine, const Compiled& compiled,
                                  const std::vector<Argument>& arguments, Diagnostics& sink);

}  // namespace stave
