// Tables as text: PyTorch's compute-only CSV, and a `.sched` file with the order written out.
#pragma once

#include <string>

#include "cli/pipeline.h"
#include "core/result.h"

namespace stave {

/// A row to a device, its ops in order, no idle cells. Errors: an op that PyTorch has no letter or no indices for, a
/// stage on two devices.
Result<std::string> csv_of(const Built& built);

/// The file of `loaded` with the values of its parameters as their defaults and its order as a `table`, so that other
/// costs leave the order as it stands, and the costs of the command line after its own. Comments are lost, and what ordered
/// it: `any`, `fill`, `limit`.
std::string sched_of(Loaded& loaded, const Built& built);

}  // namespace stave
