// Rules: what a simulation does about the things that messages contend for. Without any of them it is simulate.h's.
#pragma once

#include <cstdint>
#include <optional>

namespace stave {

/// How messages share a link that several of them want at once.
enum class Sharing : std::uint8_t {
  /// They do not: every edge has a link of its own.
  Own,
  /// First come, first served: by the time at which each could start, then by the issue order.
  FirstCome,
  /// All at once, each with an equal share of every link; a message moves with the least of its shares.
  Fair,
};

struct SimulationRules {
  /// Nothing: FirstCome where the cluster has shared links.
  std::optional<Sharing> links;
  /// A device sends and receives itself, in its issue order: a message begins when both ends have come to it and holds up
  /// both.
  bool blocking = false;
  /// A message begins when the one before it on its edge has ended: nothing is under way behind another.
  bool rendezvous = false;
  /// Bytes that an edge takes from its sender before there is a slot for them at the receiver.
  std::optional<std::uint64_t> buffered_bytes;

  /// Something else than who shares links.
  bool changes_order() const { return blocking || rendezvous || buffered_bytes.has_value(); }
};

}  // namespace stave
