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

/// Compares an envelope with what is due. Empty, or "slot 2 holds the gradient of I(1, 2) of step 3, but that of ... is
/// due".
std::string check_envelope(const Program& program, const Envelope& found, const Envelope& due, std::uint32_t slot);

}  // namespace stave
