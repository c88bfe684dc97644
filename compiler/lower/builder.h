// Builder: a Program from what each device meets, in its order. Slots and waits follow from these rows alone.
// It goes device by device, since everything about a device's slots stands in its own row, and since arrays are then
// read from front to back: at millions of ops, memory is what takes the time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compiler/lower/readers.h"
#include "compiler/lower/slots.h"
#include "compiler/schedule.h"
#include "compiler/table_needs.h"
#include "core/lanes.h"
#include "core/program.h"
#include "core/timeline.h"

namespace stave {

class Builder {
 public:
  /// With `starts` a slot is used again only when it is free at that time; without, as soon as the device's row allows.
  /// All but `starts` must be there, and outlive it.
  Builder(const Schedule& schedule, const Table& table, const TableNeeds& needs, const Readers& readers,
          const Starts* starts);

  /// Appends the message that `leader` leads to the issue order; all of them before `build`.
  NodeId number(std::uint32_t leader) {
    leaders_.push_back(leader);
    drafts_[leader].message = static_cast<std::uint32_t>(leaders_.size() - 1);
    return node(leader);
  }
  /// Deals the nodes of `order`, drafts as in `build`, out to their devices, a message to both of its own; and numbers
  /// the messages, so that `order` then has their nodes.
  Rows<NodeId> deal(std::vector<NodeId>& order);
  /// Everything but `order`. By device, in its order: a position, or table.size() plus the reader that leads a message,
  /// which is a draft of its node.
  Program build(Rows<NodeId> rows);

 private:
  /// What is found out about a message at its two ends.
  struct Draft {
    std::uint32_t message = MessageId::kNone;
    EdgeId edge;
    std::uint32_t out_slot = SlotPool::kNone;
    std::uint32_t in_slot = SlotPool::kNone;
    /// The node that must end before it may write its slot: by far most have one at most, the others are in `more_`.
    NodeId slot_wait;
  };

  void find_edges();
  void device(std::uint32_t d, std::span<NodeId> row);
  void entry(std::uint32_t position);
  void wait_beside(std::uint32_t position);
  void join_waits();
  template <class T>
  void put_in_order(std::uint32_t d, Rows<T>& rows) const;
  void write_outputs(std::uint32_t position);
  void read_inputs(std::uint32_t position);
  void send(std::uint32_t leader);
  void receive(std::uint32_t leader);
  /// Calls `wait` for every node that read what the slot held before.
  template <class Wait>
  void wait_for_readers(const SlotPool::Slot& slot, std::uint16_t payload, Wait&& wait) const;
  /// Calls `wait` for every op of the device, on whatever lane, that read what the slot held before.
  template <class Wait>
  void wait_for_lanes(const SlotPool::Slot& slot, std::uint16_t payload, Wait&& wait) const;
  void messages();
  void stash();

  NodeId node(std::uint32_t leader) const { return NodeId(table_.size() + drafts_[leader].message); }
  std::uint32_t out_slot(std::uint32_t producer, std::uint16_t payload) const;
  Ticks start(std::uint32_t position) const { return starts_ ? starts_->start[position] : 0; }
  Ticks end(std::uint32_t position) const { return starts_ ? starts_->end[position] : 0; }

  const Table& table_;
  const Lanes lanes_;
  const TableNeeds& needs_;
  const Readers& readers_;
  const Starts* starts_;
  Program program_;
  /// By issue order.
  std::vector<std::uint32_t> leaders_;
  /// By reader; used of those that lead a message.
  std::vector<Draft> drafts_;
  /// Further nodes that a message waits for, with the reader that leads it.
  std::vector<std::pair<std::uint32_t, NodeId>> more_;

  /// By position, the row in which the builder has put what belongs to it; with streams alone.
  std::vector<std::uint32_t> row_of_;

  /// Of the device in hand, by payload.
  std::vector<SlotPool> pools_;
};

}  // namespace stave
