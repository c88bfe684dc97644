// Simulated time: a whole number of ticks, so that equal means equal.
// How long a tick is belongs to the costs in force (`ticks_per_unit`).
#pragma once

#include <cstdint>

namespace stave {

using Ticks = std::int64_t;

/// No time of a table, nor a sum of all its costs, may pass this. Adding two such times cannot overflow.
inline constexpr Ticks kMaxTicks = INT64_MAX / 4;

}  // namespace stave
