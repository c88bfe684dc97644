#include "compiler/lower/builder.h"

#include <algorithm>

#include "compiler/activations.h"
#include "core/check.h"
#include "core/fetch.h"

namespace stave {

namespace {

/// How many nodes ahead a walk in issue order fetches memory: neighbours in time lie far apart in every array.
constexpr std::size_t kAhead = 48;

}  // namespace

Builder::Builder(const Schedule& schedule, const Table& table, const TableNeeds& needs, const Readers& readers,
                 const Starts* starts)
    : table_(table), lanes_(table), needs_(needs), readers_(readers), starts_(starts) {
  STAVE_CHECK(!starts || starts->message.size() == schedule.payloads.size(),
              "start times without what their messages take");
  program_.payloads = schedule.payloads;
  program_.sizes = schedule.sizes;
  drafts_.resize(readers.of.items.size());
  leaders_.reserve(readers.of.items.size());
  if (!lanes_.plain()) row_of_.assign(table.size(), 0);
  find_edges();
}

/// By source, and then by target.
void Builder::find_edges() {
  std::vector<EdgeId> edge_to(table_.devices());
  std::vector<std::uint32_t> targets;
  for (std::uint32_t d = 0; d < table_.devices(); ++d) {
    const std::uint32_t begin = readers_.of.first[table_.first[d]];
    const std::uint32_t end = readers_.of.first[table_.first[d + 1]];
    targets.clear();
    for (std::uint32_t i = begin; i < end; ++i) {
      EdgeId& edge = edge_to[readers_[i].device];
      if (readers_[i].device == d || edge.valid()) continue;
      edge = EdgeId(0);
      targets.push_back(readers_[i].device);
    }
    std::sort(targets.begin(), targets.end());
    for (const std::uint32_t target : targets) {
      edge_to[target] = EdgeId(static_cast<std::uint32_t>(program_.edges.size()));
      program_.edges.push_back({DeviceId(d), DeviceId(target)});
    }
    for (std::uint32_t i = begin; i < end; ++i) drafts_[i].edge = edge_to[readers_[i].device];
    for (const std::uint32_t target : targets) edge_to[target] = EdgeId();
  }
}

Rows<NodeId> Builder::deal(std::vector<NodeId>& order) {
  Rows<NodeId> rows;
  rows.first.assign(table_.devices() + std::size_t(1), 0);
  for (std::uint32_t d = 0; d < table_.devices(); ++d) rows.first[d + 1] = table_.first[d + 1] - table_.first[d];
  for (std::uint32_t i = 0; i < readers_.of.items.size(); ++i) {
    if (!readers_.leads_message(i)) continue;
    ++rows.first[readers_.device_at[readers_[i].producer] + 1];
    ++rows.first[readers_[i].device + 1];
  }
  for (std::uint32_t d = 0; d < table_.devices(); ++d) rows.first[d + 1] += rows.first[d];
  rows.items.resize(rows.first.back());
  std::vector<std::uint32_t> next(rows.first.begin(), rows.first.end() - 1);
  const auto put = [&](std::uint32_t d, NodeId draft) {
    NodeId* const at = rows.items.data() + next[d]++;
    fetch(at + 16);
    *at = draft;
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size()) {
      const std::uint32_t ahead = order[i + kAhead].value;
      if (ahead < table_.size())
        fetch(&readers_.device_at[ahead]);
      else
        fetch(&drafts_[ahead - table_.size()]);
    }
    const NodeId draft = order[i];
    if (draft.value < table_.size()) {
      put(readers_.device_at[draft.value], draft);
      continue;
    }
    order[i] = number(draft.value - table_.size());
    const Edge& edge = program_.edges[drafts_[draft.value - table_.size()].edge.value];
    put(edge.source.value, draft);
    put(edge.target.value, draft);
  }
  return rows;
}

Program Builder::build(Rows<NodeId> rows) {
  program_.table = table_;
  program_.slots.resize(table_.devices());
  program_.reads.first.reserve(table_.size() + std::size_t(1));
  program_.writes.first.reserve(table_.size() + std::size_t(1));
  program_.reads.items.reserve(readers_.of.items.size());
  program_.writes.items.reserve(readers_.of.items.size());
  program_.waits.first.reserve(table_.size() + leaders_.size() + 1);
  program_.waits.items.reserve(5 * leaders_.size());
  for (std::uint32_t d = 0; d < table_.devices(); ++d) {
    const std::uint32_t first = rows.first[d];
    device(d, std::span(rows.items).subspan(first, rows.first[d + 1] - first));
  }
  program_.issue = std::move(rows);
  messages();
  join_waits();
  stash();
  return std::move(program_);
}

void Builder::device(std::uint32_t d, std::span<NodeId> row) {
  pools_.assign(program_.payloads.size(), SlotPool());
  std::uint32_t entries = table_.first[d];
  for (NodeId& each : row) {
    if (each.value < table_.size()) {
      if (!lanes_.plain()) row_of_[each.value] = entries++;
      entry(each.value);
      continue;
    }
    const std::uint32_t leader = each.value - table_.size();
    if (readers_[leader].device == d)
      receive(leader);
    else
      send(leader);
    each = node(leader);
  }

  if (!lanes_.plain()) {
    put_in_order(d, program_.reads);
    put_in_order(d, program_.writes);
    put_in_order(d, program_.waits);
  }

  for (const SlotPool& pool : pools_) program_.slots[DeviceId(d)].by_payload.push_back(pool.size());
}

void Builder::entry(std::uint32_t position) {
  wait_beside(position);
  write_outputs(position);
  read_inputs(position);
  program_.waits.end_row();
}

/// With streams the entries of a device are met by time, which is not their order in the table: their rows, the last
/// ones, are put into it.
template <class T>
void Builder::put_in_order(std::uint32_t d, Rows<T>& rows) const {
  const std::uint32_t begin = table_.first[d];
  const std::uint32_t end = table_.first[d + 1];
  Rows<T> met;
  met.items.assign(rows.items.begin() + rows.first[begin], rows.items.end());
  for (std::uint32_t i = begin; i <= end; ++i) met.first.push_back(rows.first[i] - rows.first[begin]);
  met.first.erase(met.first.begin());
  rows.items.resize(rows.first[begin]);
  rows.first.resize(begin + std::size_t(1));
  for (std::uint32_t position = begin; position < end; ++position) {
    for (const T& each : met[row_of_[position] - begin]) rows.items.push_back(each);
    rows.end_row();
  }
}

/// Waits for other ops of the same device that no lane's order brings about: those of its other lanes, and, in an order
/// that is impossible, those that stand behind.
void Builder::wait_beside(std::uint32_t position) {
  if (starts_ && lanes_.plain()) return;
  const std::uint16_t device = readers_.device_at[position];
  if (const std::uint32_t before = lanes_.written_after(position); before != Lanes::kNone)
    program_.waits.items.push_back(NodeId(before));
  const bool computes = lanes_.computes(position);
  needs_.for_each(position, [&](std::uint32_t needed, std::uint16_t) {
    if (readers_.device_at[needed] != device) return;
    const bool behind = !starts_ && needed > position;
    if (behind || computes != lanes_.computes(needed) || (!computes && lanes_.lane(needed) != lanes_.lane(position)))
      program_.waits.items.push_back(NodeId(needed));
  });
}

/// The entries of a pair start together: each waits for what the other waits for.
void Builder::join_waits() {
  if (table_.blocks.size() == 0) return;
  const std::vector<std::uint32_t> block_of = blocks_of(table_);
  Rows<NodeId> joined;
  joined.first.reserve(program_.waits.first.size());
  joined.items.reserve(program_.waits.items.size());
  for (std::uint32_t node = 0; node < program_.waits.size(); ++node) {
    if (node >= table_.size() || block_of[node] == UINT32_MAX) {
      for (NodeId each : program_.waits[node]) joined.items.push_back(each);
    } else {
      for (std::uint32_t position : table_.blocks[block_of[node]])
        if (readers_.device_at[position] == readers_.device_at[node])
          for (NodeId each : program_.waits[position]) joined.items.push_back(each);
    }
    joined.end_row();
  }
  program_.waits = std::move(joined);
}

template <class Wait>
void Builder::wait_for_readers(const SlotPool::Slot& slot, std::uint16_t payload, Wait&& wait) const {
  if (slot.messages == 1) wait(node(slot.message));
  if (slot.messages < 2) return;
  const std::uint32_t source = readers_.device_at[slot.producer];
  for (std::uint32_t i = readers_.of.first[slot.producer]; i < readers_.of.first[slot.producer + 1]; ++i)
    if (readers_[i].payload == payload && readers_[i].device != source && readers_.leads(i)) wait(node(i));
}

template <class Wait>
void Builder::wait_for_lanes(const SlotPool::Slot& slot, std::uint16_t payload, Wait&& wait) const {
  if (slot.received != SlotPool::kNone)
    for (std::uint32_t i = slot.received; i < readers_.group_end(slot.received); ++i) wait(NodeId(readers_[i].consumer));
  if (slot.producer == SlotPool::kNone) return;
  for (std::uint32_t i = readers_.of.first[slot.producer]; i < readers_.of.first[slot.producer + 1]; ++i)
    if (readers_[i].payload == payload && readers_[i].device == readers_.device_at[slot.producer])
      wait(NodeId(readers_[i].consumer));
}

void Builder::write_outputs(std::uint32_t position) {
  const std::uint16_t device = readers_.device_at[position];
  const std::uint32_t end = readers_.of.first[position + 1];
  for (std::uint32_t i = readers_.of.first[position]; i < end;) {
    const std::uint16_t payload = readers_[i].payload;
    if (payload == 0) {
      ++i;
      continue;
    }
    const std::uint32_t slot = pools_[payload].take(start(position));
    SlotPool::Slot& mine = pools_[payload][slot];
    const auto wait = [&](NodeId on) { program_.waits.items.push_back(on); };
    wait_for_readers(mine, payload, wait);
    // Where all ops compute, one that read the slot stands before this one on the same lane.
    if (!lanes_.plain()) wait_for_lanes(mine, payload, wait);
    mine = SlotPool::Slot();
    mine.producer = position;
    for (; i < end && readers_[i].payload == payload; ++i) {
      if (readers_[i].device != device)
        mine.readers += readers_.leads(i);
      else if (readers_[i].consumer > position)
        mine.last_reader = readers_[i].consumer;
    }
    mine.readers += mine.last_reader != SlotPool::kNone;
    program_.writes.items.push_back({slot, payload});
  }
  program_.writes.end_row();
}

void Builder::read_inputs(std::uint32_t position) {
  for (const std::uint32_t i : readers_.inputs(needs_, position)) {
    if (i == Readers::kNone) continue;
    const Reader& reader = readers_[i];
    std::uint32_t slot = SlotPool::kNone;
    if (readers_.crosses(reader)) {
      program_.waits.items.push_back(node(i));
      slot = drafts_[i].in_slot;
    } else if (reader.producer < position) {
      slot = out_slot(reader.producer, reader.payload);
    }
    if (reader.payload == 0) continue;
    program_.reads.items.push_back({slot, reader.payload});
    if (slot == SlotPool::kNone) continue;
    SlotPool& pool = pools_[reader.payload];
    if (pool[slot].last_reader == position) pool.read(slot, end(position));
  }
  program_.reads.end_row();
}

std::uint32_t Builder::out_slot(std::uint32_t producer, std::uint16_t payload) const {
  for (const SlotUse& use : program_.writes[lanes_.plain() ? producer : row_of_[producer]])
    if (use.payload == payload) return use.slot;
  return SlotPool::kNone;
}

void Builder::send(std::uint32_t leader) {
  const Reader& reader = readers_[leader];
  if (reader.payload == 0) return;
  Draft& draft = drafts_[leader];
  draft.out_slot = out_slot(reader.producer, reader.payload);
  SlotPool& pool = pools_[reader.payload];
  pool[draft.out_slot].message = leader;
  ++pool[draft.out_slot].messages;
  const std::uint32_t source = program_.edges[draft.edge.value].source.value;
  pool.read(draft.out_slot, starts_ ? starts_->end[reader.producer] +
                                          starts_->message.from(table_.ops, table_.entries[reader.producer],
                                                                reader.payload, source, reader.device)
                                    : 0);
}

void Builder::receive(std::uint32_t leader) {
  const Reader& reader = readers_[leader];
  if (reader.payload == 0) return;
  Draft& draft = drafts_[leader];
  SlotPool& pool = pools_[reader.payload];
  draft.in_slot = pool.take(end(reader.producer));
  SlotPool::Slot& mine = pool[draft.in_slot];
  const auto wait = [&](NodeId on) {
    if (draft.slot_wait.valid())
      more_.push_back({leader, on});
    else
      draft.slot_wait = on;
  };
  if (!lanes_.plain())
    wait_for_lanes(mine, reader.payload, wait);
  else if (mine.last_reader != SlotPool::kNone)
    wait(NodeId(mine.last_reader));
  wait_for_readers(mine, reader.payload, wait);
  mine = SlotPool::Slot();
  mine.received = leader;
  mine.readers = 1;
  mine.last_reader = readers_[readers_.group_end(leader) - 1].consumer;
}

void Builder::messages() {
  std::sort(more_.begin(), more_.end());
  program_.messages.reserve(leaders_.size());
  for (std::size_t i = 0; i < leaders_.size(); ++i) {
    if (i + kAhead < leaders_.size()) {
      fetch(readers_.of.items, leaders_[i + kAhead] + std::size_t(1));
      fetch(&drafts_[leaders_[i + kAhead]]);
    }
    const std::uint32_t leader = leaders_[i];
    const Reader& reader = readers_[leader];
    const Draft& draft = drafts_[leader];
    Message message;
    message.producer = reader.producer;
    message.consumer = reader.consumer;
    message.last_consumer = readers_[readers_.group_end(leader) - 1].consumer;
    message.edge = draft.edge;
    message.out_slot = draft.out_slot;
    message.in_slot = draft.in_slot;
    message.payload = reader.payload;
    program_.messages.push_back(message);
    program_.waits.items.push_back(NodeId(reader.producer));
    if (draft.slot_wait.valid()) {
      program_.waits.items.push_back(draft.slot_wait);
      const auto begin = std::lower_bound(more_.begin(), more_.end(), std::pair(leader, NodeId(0)));
      for (auto more = begin; more != more_.end() && more->first == leader; ++more)
        program_.waits.items.push_back(more->second);
    }
    program_.waits.end_row();
  }
  STAVE_CHECK(program_.waits.items.size() < UINT32_MAX, "too many waits");
}

void Builder::stash() {
  const Activations activations(table_.ops);
  const std::vector<std::uint32_t> block_of = blocks_of(table_);
  std::vector<std::uint32_t> given;
  std::vector<std::uint32_t> slot_of(activations.triples(), SlotPool::kNone);
  std::vector<std::uint32_t> free;
  program_.stash.assign(table_.size(), SlotPool::kNone);
  for (std::uint32_t d = 0; d < table_.devices(); ++d) {
    free.clear();
    std::uint32_t& count = program_.slots[DeviceId(d)].stash;
    for (std::uint32_t position = table_.first[d]; position < table_.first[d + 1]; ++position) {
      const Activations::Use use = activations.of(table_.entries[position]);
      if (use.triple == Activations::kNone) {
        free.insert(free.end(), given.begin(), given.end());
        given.clear();
        continue;
      }
      std::uint32_t& slot = slot_of[use.triple];
      if (slot == SlotPool::kNone && use.takes) {
        slot = free.empty() ? count++ : free.back();
        if (!free.empty()) free.pop_back();
      }
      program_.stash[position] = slot;
      if (slot != SlotPool::kNone && use.gives) {
        given.push_back(slot);
        slot = SlotPool::kNone;
      }
      // What a pair gives back it holds to its end.
      const bool ends = block_of.empty() || block_of[position] == UINT32_MAX || position + 1 == table_.first[d + 1] ||
                        block_of[position + 1] != block_of[position];
      if (!ends) continue;
      free.insert(free.end(), given.begin(), given.end());
      given.clear();
    }
    given.clear();
  }
}

}  // namespace stave
