// Program: the table with its messages, what each node waits for, and the slots that hold data.
// It is what the simulator prices and the executor runs: one plan for both. Made by compiler/lower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/rows.h"
#include "core/sizes.h"
#include "core/table.h"

namespace stave {

/// A directed edge between two devices: one in-order lane.
struct Edge {
  DeviceId source;
  DeviceId target;
};

/// One transfer: its send and its receive together.
struct Message {
  /// Position of the op that makes the data, on the edge's source.
  std::uint32_t producer = 0;
  /// Positions of the first and the last op that read it, on the edge's target.
  std::uint32_t consumer = 0;
  std::uint32_t last_consumer = 0;
  EdgeId edge;
  /// Slot it leaves from on the source, and slot it arrives in on the target (see Program::slots); none without data.
  std::uint32_t out_slot = UINT32_MAX;
  std::uint32_t in_slot = UINT32_MAX;
  /// Index into Program::payloads.
  std::uint16_t payload = 0;
};

/// Data that an op reads or writes: a slot of its own device, and what is in it.
struct SlotUse {
  std::uint32_t slot = UINT32_MAX;
  /// Index into Program::payloads.
  std::uint16_t payload = 0;
  friend bool operator==(const SlotUse&, const SlotUse&) = default;
};

struct Program {
  Table table;
  Sizes sizes;
  /// What messages carry: "activation", "gradient", ...; the first, empty, is a message without data (`after`).
  std::vector<std::string> payloads = {""};
  std::vector<Edge> edges;
  /// In issue order.
  std::vector<Message> messages;

  /// One topological order of all nodes, ties broken by start time. Empty if the program was lowered unchecked.
  std::vector<NodeId> order;
  /// For every device the nodes it takes part in, in the order in which it issues them: its ops, and each message
  /// it sends or receives. A message stands in two rows.
  Rows<NodeId> issue;

  /// For every node the nodes that must have ended before it starts, beyond its own lane's order: data that it reads,
  /// and slots that it writes. Derived from the slots below, reduced to one a lane.
  Rows<NodeId> waits;

  /// For every position: where it finds its inputs and puts its outputs, on its device. A value for another op of the
  /// same device stays in its slot: no message, an alias.
  Rows<SlotUse> reads;
  Rows<SlotUse> writes;
  /// For every position: the slot that holds the activations of its (stage, microbatch, slice) from F to W, or none.
  std::vector<std::uint32_t> stash;

  /// For every position: the version of its stage's weights that a forward reads, and what works on its activations;
  /// and the version that an optimizer step makes (the v-th of a stage on its device makes version v, 0 is that of the
  /// start). UINT32_MAX of other ops; both empty if nothing in the table is updated or received.
  std::vector<std::uint32_t> reads_version;
  std::vector<std::uint32_t> makes_version;

  /// Number of slots of every device: messages and handed-over values, by payload; and stashes.
  struct Slots {
    std::vector<std::uint32_t> by_payload;
    std::uint32_t stash = 0;
  };
  IdVector<DeviceId, Slots> slots;

  std::uint32_t nodes() const { return table.size() + static_cast<std::uint32_t>(messages.size()); }
  bool is_message(NodeId n) const { return n.value >= table.size(); }
  NodeId node(MessageId m) const { return NodeId(table.size() + m.value); }
  MessageId message_of(NodeId n) const { return MessageId(n.value - table.size()); }
  const Message& message(NodeId n) const { return messages[n.value - table.size()]; }
};

}  // namespace stave
