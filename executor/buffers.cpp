#include "executor/buffers.h"

#include "executor/aligned.h"

namespace stave {

DeviceBuffers::DeviceBuffers(const Program::Slots& slots, const std::vector<std::size_t>& payload_bytes,
                             std::size_t stash_bytes, Memory& memory)
    : stash_stride_(round_up(stash_bytes)),
      slots_bytes_(lay_out(slots, payload_bytes)),
      slots_(memory, slots_bytes_),
      stashes_(memory, stash_stride_ * slots.stash) {}

std::size_t DeviceBuffers::lay_out(const Program::Slots& slots, const std::vector<std::size_t>& payload_bytes) {
  std::size_t offset = 0;
  std::size_t first = 0;
  for (std::size_t payload = 0; payload < slots.by_payload.size(); ++payload) {
    strides_.push_back(round_up(payload_bytes[payload]));
    offsets_.push_back(offset);
    firsts_.push_back(first);
    offset += strides_.back() * slots.by_payload[payload];
    first += slots.by_payload[payload];
  }
  envelopes_.resize(first);
  return offset;
}

double DeviceBuffers::bytes(const Program::Slots& slots, const std::vector<std::size_t>& payload_bytes,
                            std::size_t stash_bytes) {
  double sum = static_cast<double>(round_up(stash_bytes)) * slots.stash;
  for (std::size_t payload = 0; payload < slots.by_payload.size(); ++payload)
    sum += static_cast<double>(round_up(payload_bytes[payload]) + sizeof(Envelope)) * slots.by_payload[payload];
  return sum;
}

}  // namespace stave
