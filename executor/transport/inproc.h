// The transport between devices of one process: a copy from the sender's slot to the receiver's.
// When a message is due is the walker's business; here it is carried and checked.
#pragma once

#include <cstdint>
#include <string>

#include "core/program.h"
#include "executor/buffers.h"

namespace stave {

/// Copies the data and the envelope of `message` in step `step`. Empty, or what was wrong with what lay in the slot.
std::string deliver(const Program& program, const Message& message, std::uint64_t step, DeviceBuffers& source,
                    DeviceBuffers& target);

}  // namespace stave
