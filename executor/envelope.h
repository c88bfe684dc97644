// Envelope: what a slot holds, and so what a message carries. Whoever reads a slot checks that it holds what is due.
#pragma once

#include <cstdint>
#include <string>

#include "core/program.h"

namespace stave {

struct Envelope {
  static constexpr std::uint64_t kNever = UINT64_MAX;
  std::uint64_t step = kNever;
  /// The table entry that made the data.
  OpId op;
  std::uint16_t payload = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Envelope&, const Envelope&) = default;
};

/// "the gradient of I(1, 2) of step 3 (64 bytes)", or "nothing". The envelope may say anything.
std::string describe(const Program& program, const Envelope& envelope);

/// Compares an envelope with what is due. Empty, or "slot 2 holds the gradient of I(1, 2) of step 3, but that of ... is
/// due".
std::string check_envelope(const Program& program, const Envelope& found, const Envelope& due, std::uint32_t slot);

}  // namespace stave
