// Idle time of each device, split by cause. The names of the causes are compiler/metrics.h's.
#pragma once

#include <array>
#include <vector>

#include "compiler/metrics.h"
#include "core/ids.h"
#include "core/program.h"
#include "core/ticks.h"
#include "core/timeline.h"

namespace stave {

/// By IdleCause. Unit: ticks.
using Idle = std::array<Ticks, kIdleCauses.size()>;

/// Idle time of each device, split by cause.
///
/// Filling is the time before a device's first op, imbalance that after its last. In between it waits for what the next
/// op needs last: from the start of that message to its end the cause is the message; before that, another device's op,
/// and then the cause is draining if this device has no forward left to run, else forward or gradient by what the data
/// comes from. In a measured timeline an op may start later than all it needs: that too counts as message.
///
/// Shape: result[d] for every device. The causes of one device sum to `makespan` less its busy time, exactly.
/// Errors: none; `timeline` must be complete. Cost: O(nodes + waits).
IdVector<DeviceId, Idle> attribute_idle(const Program& program, const Timeline& timeline, Ticks makespan);

}  // namespace stave
