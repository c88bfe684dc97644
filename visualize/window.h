// Window: the part of a timeline that a picture shows, and the scale of its axis.
// Every renderer asks here, so that they cut alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/table.h"
#include "core/timeline.h"

namespace stave {

/// End of the last op; 0 without ops.
Ticks last_end(const Table& table, const Timeline& timeline);

/// What ops last, for the choice of a scale.
struct Durations {
  /// Of the ops that last longer than 0; 1 if there are none.
  Ticks shortest = 1;
  Ticks median = 1;
  /// Ops that last no time, which no picture shows.
  std::uint64_t nothing = 0;
};
Durations durations(const Table& table, const Timeline& timeline);

/// A round step for an axis: the smallest 1, 2 or 5 times a power of ten, in units, that is at least `least_units`.
double axis_step(double least_units);

/// The multiples of `step` from `begin` to `end`, in units, at most kMostMarks; fewer where two of them are the same
/// number, so late is the window.
std::vector<double> axis_marks(double begin, double end, double step);
inline constexpr std::size_t kMostMarks = 4096;

/// A time in units, with at most `digits` digits after the point and no useless zero: "18522", "0.5".
std::string in_units(double units, int digits = 3);

}  // namespace stave
