// Plug-in stages: a Workload whose stages are calls of a shared library, through the C interface of stave_stage.h.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "executor/stage/stage.h"
#include "executor/stage/stage_homes.h"

namespace stave {

/// Loads the library and checks its table. `options` go to its functions as they are. A name without `/` is a file here.
/// What the stages need is known after configure(). Nothing is frozen, whatever a schedule says.
///
/// Errors: no such library, or one that cannot be loaded, in the system's words; without the symbol; of another version of
/// the interface, or with a table that is too small or lacks a function; one that computes elsewhere than `homes` are. Those of a call, by its return code and message:
/// of sizes() from configure(), all others are thrown. The library stays loaded as long as the Workload lives.
Result<std::unique_ptr<Workload>> load_stage(const std::string& path, const std::string& options,
                                             std::unique_ptr<StageHomes> homes = std::make_unique<StageHomes>());

}  // namespace stave
