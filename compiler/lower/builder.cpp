#include "compiler/lower/builder.h"

#include <algorithm>

#include "compiler/activations.h"
#include "core/check.h"

namespace stave {

Builder::Builder(const Schedule& schedule, const Table& table, const Readers& readers, const Starts* starts)
    : readers_(readers), starts_(starts), payloads_(schedule.payloads.size()) {
  STAVE_CHECK(!starts || starts->message.size() == payloads_, "start times without what their messages take");
  program_.table = table;
  program_.payloads = schedule.payloads;
  pools_.resize(std::size_t(table.devices()) * payloads_);
  message_of_.assign(readers.of.items.size(), MessageId::kNone);
  find_edges();

  std::uint32_t messages = 0;
  std::uint32_t read = 0;
  std::uint32_t written = 0;
  program_.reads.first.reserve(std::size_t(table.size()) + 1);
  program_.writes.first.reserve(std::size_t(table.size()) + 1);
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    for (std::uint32_t i : readers.inputs[position]) read += i != Readers::kNone && readers[i].payload != 0;
    std::uint16_t last_payload = 0;
    for (std::uint32_t i = readers.of.first[position]; i < readers.of.first[position + 1]; ++i) {
      written += readers[i].payload != last_payload;
      last_payload = readers[i].payload;
      messages += readers.crosses(readers[i]) && readers.leads(i);
    }
    program_.reads.first.push_back(read);
    program_.writes.first.push_back(written);
  }
  program_.reads.items.resize(read);
  program_.writes.items.resize(written);
  program_.messages.reserve(messages);
  waits_.reserve(std::size_t(messages) * 4);
  waits_first_.assign(std::size_t(table.size()) + messages, 0);
  waits_count_.assign(std::size_t(table.size()) + messages, 0);
}

void Builder::find_edges() {
  const Table& table = program_.table;
  std::vector<std::uint32_t> seen_by(table.devices(), UINT32_MAX);
  std::vector<std::uint32_t> targets;
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    targets.clear();
    for (std::uint32_t i = readers_.of.first[table.first[d]]; i < readers_.of.first[table.first[d + 1]]; ++i) {
      const std::uint32_t target = readers_[i].device;
      if (target == d || seen_by[target] == d) continue;
      seen_by[target] = d;
      targets.push_back(target);
    }
    std::sort(targets.begin(), targets.end());
    first_edge_.push_back(static_cast<std::uint32_t>(program_.edges.size()));
    for (std::uint32_t target : targets) program_.edges.push_back({DeviceId(d), DeviceId(target)});
  }
  first_edge_.push_back(static_cast<std::uint32_t>(program_.edges.size()));
}

EdgeId Builder::edge(std::uint32_t source, std::uint32_t target) const {
  const auto begin = program_.edges.begin() + first_edge_[source];
  const auto end = program_.edges.begin() + first_edge_[source + 1];
  const auto found =
      std::lower_bound(begin, end, target, [](const Edge& e, std::uint32_t t) { return e.target.value < t; });
  return EdgeId(static_cast<std::uint32_t>(found - program_.edges.begin()));
}

MessageId Builder::add_message(std::uint32_t leader) {
  const Reader& reader = readers_[leader];
  Message message;
  message.producer = reader.producer;
  message.consumer = reader.consumer;
  message.last_consumer = readers_[readers_.group_end(leader) - 1].consumer;
  message.edge = edge(readers_.device_at[reader.producer], reader.device);
  message.payload = reader.payload;
  message_of_[leader] = static_cast<std::uint32_t>(program_.messages.size());
  program_.messages.push_back(message);
  return MessageId(message_of_[leader]);
}

void Builder::begin_waits(NodeId node) {
  waiting_ = node;
  waits_first_[node.value] = static_cast<std::uint32_t>(waits_.size());
}

void Builder::wait(NodeId on) {
  waits_.push_back(on);
  ++waits_count_[waiting_.value];
}

SlotPool& Builder::pool(std::uint32_t device, std::uint16_t payload) {
  std::unique_ptr<SlotPool>& result = pools_[device * payloads_ + payload];
  if (!result) result = std::make_unique<SlotPool>();
  return *result;
}

std::uint32_t Builder::take(std::uint32_t device, std::uint16_t payload, Ticks now, bool on_compute_lane) {
  SlotPool& slots = pool(device, payload);
  const std::uint32_t slot = slots.take(now);
  SlotPool::Slot& mine = slots[slot];
  if (mine.last_reader != SlotPool::kNone && !on_compute_lane) wait(NodeId(mine.last_reader));
  if (mine.messages == 1) wait(program_.node(MessageId(mine.message)));
  if (mine.messages > 1) {
    const std::uint32_t source = readers_.device_at[mine.producer];
    for (std::uint32_t i = readers_.of.first[mine.producer]; i < readers_.of.first[mine.producer + 1]; ++i)
      if (readers_[i].payload == payload && readers_[i].device != source && readers_.leads(i))
        wait(program_.node(MessageId(message_of_[i])));
  }
  mine = SlotPool::Slot();
  return slot;
}

void Builder::write_outputs(std::uint32_t position) {
  const std::uint16_t device = readers_.device_at[position];
  const std::uint32_t end = readers_.of.first[position + 1];
  std::uint32_t next = program_.writes.first[position];
  for (std::uint32_t i = readers_.of.first[position]; i < end;) {
    const std::uint16_t payload = readers_[i].payload;
    if (payload == 0) {
      ++i;
      continue;
    }
    const std::uint32_t slot = take(device, payload, start(position), true);
    SlotPool::Slot& mine = pool(device, payload)[slot];
    mine.producer = position;
    for (; i < end && readers_[i].payload == payload; ++i) {
      if (readers_[i].device != device)
        mine.readers += readers_.leads(i);
      else if (readers_[i].consumer > position)
        mine.last_reader = readers_[i].consumer;
    }
    mine.readers += mine.last_reader != SlotPool::kNone;
    program_.writes.items[next++] = {slot, payload};
  }
}

void Builder::read_inputs(std::uint32_t position) {
  const std::uint16_t device = readers_.device_at[position];
  std::uint32_t next = program_.reads.first[position];
  for (std::uint32_t i : readers_.inputs[position]) {
    if (i == Readers::kNone) continue;
    const Reader& reader = readers_[i];
    std::uint32_t slot = SlotPool::kNone;
    if (readers_.crosses(reader)) {
      const MessageId id(message_of_[i]);
      wait(program_.node(id));
      slot = program_.messages[id.value].in_slot;
    } else if (reader.producer < position) {
      slot = out_slot(reader.producer, reader.payload);
    }
    if (reader.payload == 0) continue;
    program_.reads.items[next++] = {slot, reader.payload};
    if (slot == SlotPool::kNone) continue;
    SlotPool& slots = pool(device, reader.payload);
    if (slots[slot].last_reader == position) slots.read(slot, end(position));
  }
}

void Builder::entry(std::uint32_t position, const std::vector<std::uint32_t>& late) {
  begin_waits(NodeId(position));
  for (std::uint32_t needed : late) wait(NodeId(needed));
  write_outputs(position);
  read_inputs(position);
}

std::uint32_t Builder::out_slot(std::uint32_t producer, std::uint16_t payload) const {
  for (const SlotUse& use : program_.writes[producer])
    if (use.payload == payload) return use.slot;
  return SlotPool::kNone;
}

void Builder::receive(MessageId id) {
  Message& message = program_.messages[id.value];
  begin_waits(program_.node(id));
  wait(NodeId(message.producer));
  if (message.payload == 0) return;
  const std::uint32_t device = program_.edges[message.edge.value].target.value;
  message.in_slot = take(device, message.payload, end(message.producer), false);
  SlotPool::Slot& mine = pool(device, message.payload)[message.in_slot];
  mine.readers = 1;
  mine.last_reader = message.last_consumer;
}

void Builder::send(MessageId id) {
  Message& message = program_.messages[id.value];
  if (message.payload == 0) return;
  SlotPool& slots = pool(program_.edges[message.edge.value].source.value, message.payload);
  message.out_slot = out_slot(message.producer, message.payload);
  SlotPool::Slot& mine = slots[message.out_slot];
  mine.message = id.value;
  ++mine.messages;
  slots.read(message.out_slot, arrival(message));
}

void Builder::stash() {
  const Table& table = program_.table;
  const Activations activations(table.ops);
  std::vector<std::uint32_t> slot_of(activations.triples(), SlotPool::kNone);
  std::vector<std::uint32_t> free;
  program_.stash.assign(table.size(), SlotPool::kNone);
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    free.clear();
    std::uint32_t& count = program_.slots[DeviceId(d)].stash;
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const OpId op = table.entries[position];
      const std::uint32_t triple = activations.triple(op);
      if (triple == Activations::kNone) continue;
      std::uint32_t& slot = slot_of[triple];
      if (slot == SlotPool::kNone && activations.takes(op)) {
        slot = free.empty() ? count++ : free.back();
        if (!free.empty()) free.pop_back();
      }
      program_.stash[position] = slot;
      if (slot == SlotPool::kNone || !activations.gives(op)) continue;
      free.push_back(slot);
      slot = SlotPool::kNone;
    }
  }
}

Program Builder::finish() {
  const std::uint32_t nodes = program_.nodes();
  STAVE_CHECK(waits_.size() < UINT32_MAX, "too many waits");
  Rows<NodeId>& rows = program_.waits;
  rows.first.resize(std::size_t(nodes) + 1);
  rows.items.resize(waits_.size());
  std::uint32_t next = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    for (std::uint32_t i = 0; i < waits_count_[node]; ++i) rows.items[next++] = waits_[waits_first_[node] + i];
    rows.first[node + 1] = next;
  }
  program_.slots.resize(program_.table.devices());
  for (std::uint32_t d = 0; d < program_.table.devices(); ++d) {
    std::vector<std::uint32_t>& counts = program_.slots[DeviceId(d)].by_payload;
    counts.assign(payloads_, 0);
    for (std::size_t p = 0; p < payloads_; ++p)
      if (const auto& slots = pools_[d * payloads_ + p]) counts[p] = slots->size();
  }
  stash();
  return std::move(program_);
}

}  // namespace stave
