#include "make_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/check.h"
#include "executor/random.h"

namespace stave::test {

namespace {

constexpr std::uint16_t kActivation = 1;
constexpr std::uint16_t kGradient = 2;

struct Read {
  std::uint32_t producer;
  std::uint16_t payload;
};

// What the entries of a table read from one another.
std::vector<std::vector<Read>> reads_of(const Table& table, std::uint32_t stages) {
  const std::vector<std::uint32_t> at = positions_of(table);
  const OpSet& ops = table.ops;
  const KindId forward = ops.find("F");
  const KindId backward = ops.find("I");
  std::vector<std::vector<Read>> result(table.size());
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const OpId op = table.entries[position];
    const std::uint32_t s = ops.stage(op);
    const std::uint32_t m = ops.microbatch(op);
    const std::string& name = ops.kind(op).name;
    if (name == "F" && s > 0)
      result[position].push_back({at[ops.id(forward, std::array{s - 1, m}).value], kActivation});
    if ((name == "I" || name == "B") && s + 1 < stages)
      result[position].push_back({at[ops.id(backward, std::array{s + 1, m}).value], kGradient});
  }
  return result;
}

std::vector<std::uint32_t> topological(const Table& table, const std::vector<std::vector<Read>>& reads) {
  std::vector<std::uint32_t> cursor(table.first.begin(), table.first.end() - 1);
  std::vector<std::uint8_t> done(table.size(), 0);
  std::vector<std::uint32_t> result;
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::uint32_t d = 0; d < table.devices(); ++d) {
      if (cursor[d] == table.first[d + 1]) continue;
      const bool ready = std::ranges::all_of(reads[cursor[d]], [&](const Read& r) { return done[r.producer] != 0; });
      if (!ready) continue;
      result.push_back(cursor[d]);
      moved = true;
      ++cursor[d];
    }
    // One round at a time: devices advance together, as in time.
    for (std::uint32_t position : result) done[position] = 1;
  }
  STAVE_CHECK(result.size() == table.size(), "the order of a test cannot run");
  return result;
}

// A slot that may be taken again once `users` have ended.
struct Pool {
  std::vector<std::uint8_t> taken;
  std::vector<std::vector<NodeId>> users;
  std::uint32_t take() {
    for (std::uint32_t i = 0; i < taken.size(); ++i) {
      if (taken[i] != 0) continue;
      taken[i] = 1;
      return i;
    }
    taken.push_back(1);
    users.emplace_back();
    return static_cast<std::uint32_t>(taken.size() - 1);
  }
};

std::uint32_t extent_of_stash(const std::vector<std::uint32_t>& slots) {
  std::uint32_t most = 0;
  for (std::uint32_t slot : slots) most = std::max(most, slot + 1);
  return most;
}

EdgeId edge_of(Program& p, DeviceId source, DeviceId target) {
  for (std::uint32_t i = 0; i < p.edges.size(); ++i)
    if (p.edges[i].source == source && p.edges[i].target == target) return EdgeId(i);
  p.edges.push_back({source, target});
  return EdgeId(static_cast<std::uint32_t>(p.edges.size() - 1));
}

struct Lists {
  std::vector<std::vector<SlotUse>> reads;
  std::vector<std::vector<SlotUse>> writes;
  std::vector<std::vector<NodeId>> op_waits;
  std::vector<std::vector<NodeId>> message_waits;
};

template <class T>
void append(Rows<T>& rows, const std::vector<T>& row) {
  rows.items.insert(rows.items.end(), row.begin(), row.end());
  rows.end_row();
}

void stash_slots(Program& p) {
  const OpSet& ops = p.table.ops;
  p.stash.assign(p.table.size(), UINT32_MAX);
  for (std::uint32_t d = 0; d < p.table.devices(); ++d) {
    Pool pool;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> held;
    std::vector<std::uint32_t> used;
    for (std::uint32_t i = p.table.first[d]; i < p.table.first[d + 1]; ++i) {
      const OpId op = p.table.entries[i];
      if (ops.microbatch(op) == OpId::kNone) continue;
      const std::pair key(ops.stage(op), ops.microbatch(op));
      const OpKind& kind = ops.kind(op);
      if (!held.contains(key)) held[key] = pool.take();
      p.stash[i] = held[key];
      used.push_back(held[key]);
      if (kind.name == "W" || kind.name == "B") pool.taken[held[key]] = 0;
    }
    p.slots[DeviceId(d)].stash = extent_of_stash(used);
  }
}

void finish(Program& p, const Lists& lists) {
  for (const auto& row : lists.reads) append(p.reads, row);
  for (const auto& row : lists.writes) append(p.writes, row);
  for (const auto& row : lists.op_waits) append(p.waits, row);
  for (const auto& row : lists.message_waits) append(p.waits, row);
  stash_slots(p);
}

}  // namespace

Table make_table(const Order& order, std::uint32_t stages, std::uint32_t microbatches) {
  Table table;
  std::vector<OpIndex> indices = {{"s", IndexRole::Stage, stages}, {"m", IndexRole::Microbatch, microbatches}};
  const auto add = [&](std::string name, Operation operation, std::vector<KindId> parts) {
    OpKind kind;
    kind.name = std::move(name);
    kind.operation = operation;
    kind.indices = indices;
    kind.parts = std::move(parts);
    STAVE_CHECK(table.ops.add(std::move(kind)), "too many ops in a test");
  };
  add("F", Operation::Forward, {});
  add("I", Operation::InputGradient, {});
  add("W", Operation::WeightGradient, {});
  add("B", Operation::Backward, {KindId(1), KindId(2)});
  add("R", Operation::Recompute, {});
  indices[1] = {"r", IndexRole::Other, std::max(microbatches, static_cast<std::uint32_t>(order.size()))};
  add("G", Operation::ReduceGradient, {});
  add("O", Operation::Optimizer, {});
  for (const auto& list : order) {
    for (const Step& step : list)
      table.entries.push_back(
          table.ops.id(table.ops.find(std::string(1, step.letter)), std::array{step.stage, step.microbatch}));
    table.first.push_back(table.size());
  }
  return table;
}

Program lower_by_hand(Table table, std::uint32_t stages, std::uint32_t) {
  Program p;
  p.table = std::move(table);
  p.payloads = {"", "activation", "gradient"};
  const std::uint32_t devices = p.table.devices();
  p.slots.resize(devices);
  const std::vector<std::vector<Read>> reads = reads_of(p.table, stages);
  std::vector<std::vector<std::uint32_t>> readers(p.table.size());
  for (std::uint32_t i = 0; i < p.table.size(); ++i)
    for (const Read& read : reads[i]) readers[read.producer].push_back(i);

  Lists lists;
  lists.reads.resize(p.table.size());
  lists.writes.resize(p.table.size());
  lists.op_waits.resize(p.table.size());
  std::vector<std::vector<std::array<Pool, 3>>> pools(1, std::vector<std::array<Pool, 3>>(devices));
  std::vector<std::vector<NodeId>> issue(devices);
  // Slot that a reader finds its data in, and the message that brings it.
  std::vector<std::uint32_t> in_slot(p.table.size(), UINT32_MAX);

  for (std::uint32_t position : topological(p.table, reads)) {
    const DeviceId d = p.table.device_of(position);
    p.order.push_back(NodeId(position));
    issue[d.value].push_back(NodeId(position));
    for (const Read& read : reads[position]) {
      lists.reads[position].push_back({in_slot[position], read.payload});
      Pool& pool = pools[0][d.value][read.payload];
      pool.taken[in_slot[position]] = 0;
      pool.users[in_slot[position]].push_back(NodeId(position));
    }
    if (readers[position].empty()) continue;
    const std::uint32_t reader = readers[position].front();
    const std::uint16_t payload = reads[reader].front().payload;
    Pool& pool = pools[0][d.value][payload];
    const std::uint32_t slot = pool.take();
    for (NodeId user : pool.users[slot])
      if (user.value >= p.table.size()) lists.op_waits[position].push_back(user);
    pool.users[slot].clear();
    lists.writes[position].push_back({slot, payload});
    const DeviceId target = p.table.device_of(reader);
    if (target == d) {
      in_slot[reader] = slot;
      continue;
    }
    Message m;
    m.producer = position;
    m.consumer = m.last_consumer = reader;
    m.edge = edge_of(p, d, target);
    m.payload = payload;
    m.out_slot = slot;
    Pool& arriving = pools[0][target.value][payload];
    m.in_slot = arriving.take();
    in_slot[reader] = m.in_slot;
    const NodeId node(p.table.size() + static_cast<std::uint32_t>(p.messages.size()));
    lists.message_waits.push_back(arriving.users[m.in_slot]);
    arriving.users[m.in_slot].clear();
    pool.taken[slot] = 0;
    pool.users[slot].push_back(node);
    lists.op_waits[reader].push_back(node);
    p.messages.push_back(m);
    p.order.push_back(node);
    issue[d.value].push_back(node);
    issue[target.value].push_back(node);
  }
  for (std::uint32_t d = 0; d < devices; ++d) {
    append(p.issue, issue[d]);
    for (const Pool& pool : pools[0][d])
      p.slots[DeviceId(d)].by_payload.push_back(static_cast<std::uint32_t>(pool.taken.size()));
  }
  finish(p, lists);
  return p;
}

Program lower_unchecked_by_hand(Table table, std::uint32_t stages, std::uint32_t) {
  Program p;
  p.table = std::move(table);
  p.payloads = {"", "activation", "gradient"};
  const std::uint32_t devices = p.table.devices();
  p.slots.resize(devices);
  for (Program::Slots& slots : p.slots) slots.by_payload.assign(3, 0);
  const std::vector<std::vector<Read>> reads = reads_of(p.table, stages);
  Lists lists;
  lists.reads.resize(p.table.size());
  lists.writes.resize(p.table.size());
  lists.op_waits.resize(p.table.size());
  const auto take = [&](DeviceId d, std::uint16_t payload) { return p.slots[d].by_payload[payload]++; };
  std::vector<std::vector<NodeId>> sent(p.table.size());
  std::vector<std::vector<NodeId>> received(p.table.size());
  for (std::uint32_t reader = 0; reader < p.table.size(); ++reader) {
    for (const Read& read : reads[reader]) {
      const DeviceId source = p.table.device_of(read.producer);
      const DeviceId target = p.table.device_of(reader);
      const std::uint32_t out = take(source, read.payload);
      lists.writes[read.producer].push_back({out, read.payload});
      if (source == target) {
        lists.reads[reader].push_back({out, read.payload});
        lists.op_waits[reader].push_back(NodeId(read.producer));
        continue;
      }
      Message m;
      m.producer = read.producer;
      m.consumer = m.last_consumer = reader;
      m.edge = edge_of(p, source, target);
      m.payload = read.payload;
      m.out_slot = out;
      m.in_slot = take(target, read.payload);
      lists.reads[reader].push_back({m.in_slot, read.payload});
      const NodeId node(p.table.size() + static_cast<std::uint32_t>(p.messages.size()));
      lists.message_waits.emplace_back();
      lists.op_waits[reader].push_back(node);
      sent[read.producer].push_back(node);
      received[reader].push_back(node);
      p.messages.push_back(m);
    }
  }
  for (std::uint32_t d = 0; d < devices; ++d) {
    std::vector<NodeId> row;
    for (std::uint32_t i = p.table.first[d]; i < p.table.first[d + 1]; ++i) {
      row.insert(row.end(), received[i].begin(), received[i].end());
      row.push_back(NodeId(i));
      row.insert(row.end(), sent[i].begin(), sent[i].end());
    }
    append(p.issue, row);
  }
  finish(p, lists);
  return p;
}

Order gpipe(std::uint32_t devices, std::uint32_t microbatches) {
  Order order(devices);
  for (std::uint32_t d = 0; d < devices; ++d) {
    for (std::uint32_t m = 0; m < microbatches; ++m) order[d].push_back({'F', d, m});
    for (std::uint32_t m = 0; m < microbatches; ++m) order[d].push_back({'B', d, m});
  }
  return order;
}

Order one_f_one_b(std::uint32_t devices, std::uint32_t microbatches) {
  Order order(devices);
  for (std::uint32_t d = 0; d < devices; ++d) {
    const std::uint32_t warmup = std::min(microbatches, devices - 1 - d);
    for (std::uint32_t m = 0; m < warmup; ++m) order[d].push_back({'F', d, m});
    for (std::uint32_t m = warmup; m < microbatches; ++m) {
      order[d].push_back({'F', d, m});
      order[d].push_back({'B', d, m - warmup});
    }
    for (std::uint32_t m = microbatches - warmup; m < microbatches; ++m) order[d].push_back({'B', d, m});
  }
  return order;
}

Order split_1f1b(std::uint32_t devices, std::uint32_t microbatches, bool reversed) {
  Order order = one_f_one_b(devices, microbatches);
  for (std::uint32_t d = 0; d < devices; ++d) {
    for (Step& step : order[d])
      if (step.letter == 'B') step.letter = 'I';
    for (std::uint32_t m = 0; m < microbatches; ++m) order[d].push_back({'W', d, reversed ? microbatches - 1 - m : m});
  }
  return order;
}

Order random_order(std::uint64_t seed, const std::vector<std::uint32_t>& device_of_stage, std::uint32_t devices,
                   std::uint32_t microbatches) {
  const auto stages = static_cast<std::uint32_t>(device_of_stage.size());
  RandomStream random(seed);
  Order order(devices);
  std::set<std::array<std::uint32_t, 3>> done;
  // What is left to do of each stage and microbatch: 0 F, 1 backward, 2 W after a split I.
  std::vector<std::array<std::uint32_t, 3>> left;
  for (std::uint32_t s = 0; s < stages; ++s)
    for (std::uint32_t m = 0; m < microbatches; ++m) left.push_back({0, s, m});
  while (!left.empty()) {
    const std::size_t pick = random.below(left.size());
    const auto [phase, s, m] = left[pick];
    const bool ready = phase == 0   ? s == 0 || done.contains({0, s - 1, m})
                       : phase == 1 ? s + 1 == stages || done.contains({1, s + 1, m})
                                    : true;
    if (!ready) continue;
    auto& list = order[device_of_stage[s]];
    bool over = phase == 2;
    if (phase == 0) list.push_back({'F', s, m});
    if (phase == 1) {
      over = random.below(2) == 0;
      list.push_back({over ? 'B' : 'I', s, m});
    }
    if (phase == 2) list.push_back({'W', s, m});
    done.insert({phase, s, m});
    if (over) {
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
    } else {
      ++left[pick][0];
    }
  }
  return order;
}

Program make(const Order& order, std::uint32_t stages, std::uint32_t microbatches) {
  return lower_by_hand(make_table(order, stages, microbatches), stages, microbatches);
}

}  // namespace stave::test
