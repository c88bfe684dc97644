// Transport: carries bytes between the processes of a run. When a message is due, and what must be in it, is for those
// who call; how two processes find each other and learn that one is gone is the control plane's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/ticks.h"

namespace stave {

/// Goes before the data of every message, and says what it is. All ranks of a run are of one architecture.
struct MessageHeader {
  static constexpr std::uint64_t kMagic = 0x5354'4156'4530'3031;
  std::uint64_t magic = kMagic;
  /// Of what the ranks run: the same on all.
  std::uint64_t plan = 0;
  std::uint64_t step = 0;
  /// Number of the table entry that made the data.
  std::uint32_t op = UINT32_MAX;
  std::uint32_t channel = 0;
  std::uint64_t bytes = 0;
  /// When the sender was ready, on the clock of the run, since the start of the step. Unit: ns.
  Ticks ready = 0;
  /// Index into Program::payloads.
  std::uint16_t payload = 0;
  std::uint16_t unused[7] = {};
};
static_assert(sizeof(MessageHeader) == 64);

/// One direction between two ranks. Messages of a channel arrive in the order in which they were sent; those of two
/// channels do not wait for one another.
struct Channel {
  std::uint32_t number = 0;
  /// The rank at the other end.
  std::uint32_t peer = 0;
};

/// All calls but `cancel` block, and are made by one thread a channel and direction at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Returns when header and data may be written again; with buffers below, that may be before they are received.
  /// Empty, or why it failed: the transport's name and a colon, then the library's words; or "canceled".
  virtual std::string send(Channel channel, const MessageHeader& header, std::span<const std::byte> data) = 0;
  /// Receives the next message of the channel, whose data must be as long as `data`: if its header says something else
  /// the data is left alone. Empty, or why it failed.
  virtual std::string receive(Channel channel, MessageHeader& header, std::span<std::byte> data) = 0;
  /// Ends all calls under way and to come, with a failure. From any thread.
  virtual void cancel() = 0;
  /// After the last message of all ranks: nothing may be under way.
  virtual void close() = 0;
};

}  // namespace stave
