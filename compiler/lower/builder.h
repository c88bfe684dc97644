// Builder: a Program made node by node. The caller says in which order each device meets its nodes; slots and waits
// follow from that order alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/lower/readers.h"
#include "compiler/lower/slots.h"
#include "compiler/schedule.h"
#include "core/program.h"
#include "core/timeline.h"

namespace stave {

class Builder {
 public:
  /// With `starts` a slot is used again only when it is free at that time; without, as soon as the order allows.
  Builder(const Schedule& schedule, const Table& table, const Readers& readers, const Starts* starts);

  /// Appends the message that `leader` leads. Its ends are met later.
  MessageId add_message(std::uint32_t leader);
  /// What a device meets, in its order. `late` are entries it needs that stand behind it; the table cannot finish then.
  void entry(std::uint32_t position, const std::vector<std::uint32_t>& late = {});
  void send(MessageId id);
  void receive(MessageId id);

  MessageId message_of(std::uint32_t leader) const { return MessageId(message_of_[leader]); }
  Program& program() { return program_; }
  /// After every node was met once: waits, slot counts, stashes.
  Program finish();

 private:
  SlotPool& pool(std::uint32_t device, std::uint16_t payload);
  /// Takes a slot, and makes `node` wait for the readers that its lane does not order before it.
  std::uint32_t take(std::uint32_t device, std::uint16_t payload, Ticks now, bool on_compute_lane);
  void write_outputs(std::uint32_t position);
  void read_inputs(std::uint32_t position);
  std::uint32_t out_slot(std::uint32_t producer, std::uint16_t payload) const;
  void begin_waits(NodeId node);
  void wait(NodeId on);
  void find_edges();
  EdgeId edge(std::uint32_t source, std::uint32_t target) const;
  void stash();
  Ticks start(std::uint32_t position) const { return starts_ ? starts_->start[position] : 0; }
  Ticks end(std::uint32_t position) const { return starts_ ? starts_->end[position] : 0; }
  Ticks arrival(const Message& message) const {
    return starts_ ? starts_->end[message.producer] + starts_->message[message.payload] : 0;
  }

  const Readers& readers_;
  const Starts* starts_;
  Program program_;
  std::size_t payloads_;
  std::vector<std::unique_ptr<SlotPool>> pools_;
  /// By the reader that leads it.
  std::vector<std::uint32_t> message_of_;
  /// Edges of one source stand together, by rising target.
  std::vector<std::uint32_t> first_edge_;

  /// Waits in the order in which nodes are met, and for every node where its own are.
  std::vector<NodeId> waits_;
  std::vector<std::uint32_t> waits_first_;
  std::vector<std::uint32_t> waits_count_;
  NodeId waiting_;
};

}  // namespace stave
