// Least: what every order of a device must hold at some moment. A limit below that cannot be kept.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "scheduler/order/units.h"

namespace stave {

struct LeastHeld {
  /// In the measure of the limit (Units::measure).
  std::int64_t size = 0;
  /// When this op starts, everything in `holders` and itself is held, whatever the order.
  OpId at;
  std::vector<OpId> holders;
};

/// Of one microbatch on one device: the largest of what must be held when one of its ops starts, since the ops that take
/// it come before and those that give it back after. Unit: as Units::taken. Cost: O(ops of the microbatch) for each op
/// of the microbatch on the device; only the microbatch that takes most there is looked at.
LeastHeld least_held(const Units& units, std::size_t limit, DeviceId device);

}  // namespace stave
