// Buffers: with them a message has left its slot at the sender when it has come, and ends when it has a slot at the receiver.
#pragma once

#include "core/lanes.h"
#include "core/program.h"
#include "core/timeline.h"

namespace stave {

/// What follows the end of a message needs only that the data has left the sender.
bool is_at_source(const Program& program, const Lanes& lanes, const Message& message, NodeId follower);

/// When `before` lets go on what waits for its end. `times` must be complete.
Ticks let_go(const Program& program, const Lanes& lanes, const Timeline& times, NodeId before, NodeId follower);

}  // namespace stave
