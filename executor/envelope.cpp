#include "executor/envelope.h"

namespace stave {

std::string describe(const Program& program, const Envelope& e) {
  if (e.step == Envelope::kNever || !e.op.valid()) return "nothing";
  if (e.payload >= program.payloads.size() || e.op.value >= program.table.ops.size())
    return "something of another program";
  return "the " + program.payloads[e.payload] + " of " + program.table.ops.text(e.op) + " of step " +
         std::to_string(e.step + 1) + " (" + std::to_string(e.bytes) + " bytes)";
}

std::string check_envelope(const Program& program, const Envelope& found, const Envelope& due, std::uint32_t slot) {
  if (found == due) return "";
  return "slot " + std::to_string(slot) + " holds " + describe(program, found) + ", but " + describe(program, due) +
         " is due";
}

}  // namespace stave
