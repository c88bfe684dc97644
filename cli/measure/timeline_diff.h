// Two timelines of one table laid over one another, predicted against measured as a rule: how long ops took, how late
// devices began, and what they waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/measure/timeline_file.h"
#include "core/result.h"

namespace stave {

/// A time in either timeline. Unit: that of the first.
struct Both {
  double first = 0;
  double second = 0;
};

/// What the compute lane of a device waits for between two of its ops, and before the first of them: for the op, elsewhere,
/// that makes the data of the message that comes last; for that message to be sent once it could be; for it to arrive; and
/// the rest, where no message is awaited. They add up to the idle time before the device's last op.
struct Waits {
  double late_compute = 0;
  double queue = 0;
  double transfer = 0;
  double other = 0;
};

struct TimelineDiff {
  struct Length {
    std::string kind;
    /// RecordedOp::kNone where the kind has none.
    std::uint32_t stage = RecordedOp::kNone;
    std::uint32_t ops = 0;
    /// Medians.
    Both median;
  };
  struct Device {
    /// Start of its first op.
    Both first;
    /// How much later its ops start in the second timeline: the median, and the most.
    double skew = 0;
    double most_skew = 0;
    Waits waits[2];
  };
  std::string unit;
  Both makespan;
  /// Every device runs its ops in one order.
  bool same_order = false;
  /// Both were made of one Program, messages included.
  bool same_program = false;
  /// By kind in the order of the table, then stage.
  std::vector<Length> lengths;
  /// By payload.
  std::vector<Length> messages;
  std::vector<Device> devices;
};

/// Time 0 is the start of the first op in either. Makespans leave optional ops out.
///
/// Errors: timelines of other tables (an op that only one of them has is named); units that have no common one.
/// Cost: O(n log n).
Result<TimelineDiff> compare_timelines(const RecordedTimeline& first, const RecordedTimeline& second);

/// The waits of every device. Shape: [device]. Unit: ticks.
std::vector<Waits> waits_of(const RecordedTimeline& timeline);

/// Median of some values, that of the lower half where they are even in number; 0 of none. Reorders them.
double median(std::vector<double>& values);

}  // namespace stave
