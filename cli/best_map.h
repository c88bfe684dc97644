// BestMap: `--map best`, the places of a cluster on which a schedule ends soonest.
#pragma once

#include <string>
#include <vector>

#include "cli/pipeline.h"
#include "compiler/arguments.h"
#include "core/result.h"

namespace stave {

/// The word of `--map` that asks for it.
inline constexpr const char* kBestMap = "best";

/// Why `--map best` cannot be, for commands that price more than one schedule or set of parameters.
Failure no_best_map(const char* command);

/// Puts the devices of a loaded schedule on the best places found. Result: what was found, in words; empty if nothing can
/// be, which what is made of it next will say. Errors: prices that are not those of a machine alone.
/// Cost: at most a thousand prices of the schedule, and where messages contend 18 simulations.
Result<std::string> place_best(Loaded& loaded, const std::vector<Argument>& arguments);

}  // namespace stave
