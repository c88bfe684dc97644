#include "executor/transport/inproc.h"

#include <cstring>

namespace stave {

namespace {

std::string content(const Program& program, const Envelope& e) {
  if (e.step == Envelope::kNever || !e.op.valid()) return "nothing";
  return "the " + program.payloads[e.payload] + " of " + program.table.ops.text(e.op) + " of step " +
         std::to_string(e.step + 1) + " (" + std::to_string(e.bytes) + " bytes)";
}

}  // namespace

std::string check_envelope(const Program& program, const Envelope& found, const Envelope& due, std::uint32_t slot) {
  if (found == due) return "";
  return "slot " + std::to_string(slot) + " holds " + content(program, found) + ", but " + content(program, due) +
         " is due";
}

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
