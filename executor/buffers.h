// DeviceBuffers: the slots of one device, which are the only memory that data lies in between ops, and the stashes.
// Every slot has an envelope that says what is in it; whoever reads a slot checks it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/program.h"
#include "executor/envelope.h"
#include "executor/memory.h"

namespace stave {

class DeviceBuffers {
 public:
  /// Shape: payload_bytes[i] for every payload of the program. `memory` must outlive them. Throws std::bad_alloc.
  DeviceBuffers(const Program::Slots& slots, const std::vector<std::size_t>& payload_bytes, std::size_t stash_bytes,
                Memory& memory = host_memory());

  /// Bytes such buffers take, as a real number: it may exceed any integer.
  static double bytes(const Program::Slots& slots, const std::vector<std::size_t>& payload_bytes,
                      std::size_t stash_bytes);

  std::byte* slot(std::uint16_t payload, std::uint32_t slot) const {
    return slots_.data() + offsets_[payload] + slot * strides_[payload];
  }
  /// All of them.
  std::span<std::byte> slots() const { return {slots_.data(), slots_bytes_}; }
  Envelope& envelope(std::uint16_t payload, std::uint32_t slot) { return envelopes_[firsts_[payload] + slot]; }
  std::byte* stash(std::uint32_t slot) const { return stashes_.data() + slot * stash_stride_; }

 private:
  std::vector<std::size_t> strides_;
  std::vector<std::size_t> offsets_;
  std::vector<std::size_t> firsts_;
  std::vector<Envelope> envelopes_;
  std::size_t stash_stride_;
  std::size_t slots_bytes_;
  MemoryBlock slots_;
  MemoryBlock stashes_;

  // Notes where every slot lies; the bytes of all.
  std::size_t lay_out(const Program::Slots& slots, const std::vector<std::size_t>& payload_bytes);
};

}  // namespace stave
