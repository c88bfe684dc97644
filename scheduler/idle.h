// Idle time of each device, split by cause. The names of the causes are compiler/metrics.h's.
#pragma once

#include <array>
#include <vector>

#include "compiler/metrics.h"
#include "compiler/schedule.h"
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
/// op needs last. From the end of an idle time to its beginning: while that message has come and its slot is in use, memory;
/// while it is under way, the message, but for the time that it takes longer than alone on the links that it shares, which
/// comes first and is the link's, as is, before it, the time from when it could start but for its links (whoever takes
/// them); while it is held up by the one before it on its edge, or by devices that send themselves, the queue; while a slot
/// it arrives in, or one that the op writes, is still in use, memory; before that it waits for the op that makes the data,
/// and then the cause is draining if this device has no forward left to run, else forward or gradient by that op. But from the moment at which another op
/// of the device has all it needs and does not fit into a limit, the cause is memory (held_back.h). An op may start later
/// than all it needs, after a setup or in a measured timeline: that counts as setup, or else as message, and of a message
/// as queue.
///
/// Shape: result[d] for every device. The causes of one device sum to `makespan` less its busy time, exactly.
/// Errors: none; `timeline` must be complete. Cost: O(nodes + waits), and with limits a sort of the entries.
IdVector<DeviceId, Idle> attribute_idle(const Schedule& schedule, const Program& program, const Timeline& timeline,
                                         Ticks makespan);

}  // namespace stave
