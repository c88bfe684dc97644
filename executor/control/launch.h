// Launch: starts the ranks of a run on this host, as processes of this very program, and stays until they have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/ticks.h"

namespace stave {

/// Starts `count` processes of this program with the arguments `words`, each with the variables that find_place() reads.
/// Rank 0's output is this process's; what the others say goes to standard error, each line behind "rank 2: ". A signal
/// that `interrupt` gives (0 for none) is passed on to all of them.
///
/// Once a rank has failed the others find it out; if none ends for `grace_ns`, those that are left, a stopped one say,
/// are ended.
///
/// Returns the greatest exit status of all, 2 for a rank that a signal ended, which is told. Errors: processes that the
/// system does not give; those started by then are ended.
Result<int> launch_ranks(std::uint32_t count, const std::vector<std::string>& words,
                         const std::function<int()>& interrupt, Ticks grace_ns = 5'000'000'000);

}  // namespace stave
