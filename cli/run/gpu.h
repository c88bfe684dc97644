// Runs on GPUs: the program that has their libraries, and what of a run's options it can do.
#pragma once

#include <memory>

#include "cli/console.h"
#include "cli/run/arguments.h"
#include "cli/run/ranks.h"
#include "core/result.h"
#include "executor/gpu.h"

namespace stave {

/// Whether this program has to hand the run to stave-gpu, which lies beside it.
bool must_hand_on(const RunArguments& arguments);
/// Becomes stave-gpu, with this process's own command line. Returns only if there is none.
Exit hand_on();

/// For all devices, or for this process's as one rank. Errors: options that runs on GPUs do not have; no GPU, where this
/// is no rank: ranks find out together.
Result<std::unique_ptr<Gpu>> make_gpu(const RunArguments& arguments, std::uint32_t devices, const Role& role);

}  // namespace stave
