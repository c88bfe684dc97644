// Rules: what a simulation does about the things that messages contend for. Without any of them it is simulate.h's.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/contention/sharing.h"

namespace stave {

struct SimulationRules {
  /// How messages share links; nothing: the first of kSharings.
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
