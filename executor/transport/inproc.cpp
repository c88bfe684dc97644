#include "executor/transport/inproc.h"

#include <cstring>

namespace stave {

std::string deliver(const Program& program, const Message& message, std::uint64_t step, DeviceBuffers& source,
                    DeviceBuffers& target) {
  if (message.in_slot == UINT32_MAX) return "";
  const Envelope& leaving = source.envelope(message.payload, message.out_slot);
  const Envelope due{step, program.table.entries[message.producer], message.payload, leaving.bytes};
  if (std::string error = check_envelope(program, leaving, due, message.out_slot); !error.empty()) return error;
  if (leaving.bytes != 0)
    std::memcpy(target.slot(message.payload, message.in_slot), source.slot(message.payload, message.out_slot),
                leaving.bytes);
  target.envelope(message.payload, message.in_slot) = leaving;
  return "";
}

}  // namespace stave
