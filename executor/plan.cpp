#include "executor/plan.h"

#include <algorithm>

#include "core/lanes.h"
#include "core/operations.h"
#include "executor/updates.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

Failure broken(const std::string& what) { return Failure{"the program contradicts itself: " + what}; }

template <class T>
bool well_formed(const Rows<T>& rows, std::size_t size) {
  if (rows.first.empty() || rows.first.front() != 0 || rows.size() != size) return false;
  if (!std::is_sorted(rows.first.begin(), rows.first.end())) return false;
  return rows.first.back() == rows.items.size();
}

Result<void> check_sizes(const Program& p) {
  const std::uint32_t devices = p.table.devices();
  if (devices == 0 || p.table.entries.empty()) return broken("it has no op");
  if (devices > kMaxRunDevices)
    return Failure{"a run in one process has at most " + std::to_string(kMaxRunDevices) + " devices, not " +
                   std::to_string(devices)};
  if (p.table.first.front() != 0 || p.table.first.back() != p.table.entries.size() ||
      !std::is_sorted(p.table.first.begin(), p.table.first.end()))
    return broken("its table");
  for (OpId op : p.table.entries)
    if (op.value >= p.table.ops.size()) return broken("an op that does not exist");
  if (p.messages.size() >= kNone - p.table.entries.size()) return broken("too many messages");
  if (!well_formed(p.waits, p.nodes())) return broken("its waits");
  if (!well_formed(p.reads, p.table.size()) || !well_formed(p.writes, p.table.size())) return broken("its data");
  if (p.stash.size() != p.table.size()) return broken("its stashes");
  for (const std::vector<std::uint32_t>* versions : {&p.reads_version, &p.makes_version})
    if (!versions->empty() && versions->size() != p.table.size()) return broken("its versions of weights");
  if (!well_formed(p.issue, devices)) return broken("its issue order");
  if (!well_formed(p.table.blocks, p.table.blocks.size())) return broken("its blocks");
  if (const std::uint32_t lanes = Lanes(p.table).count(); lanes > kMaxRunLanes)
    return Failure{"a run in one process has at most " + std::to_string(kMaxRunLanes) +
                   " devices and streams together, not " + std::to_string(lanes)};
  if (p.slots.size() != devices || p.payloads.empty()) return broken("its slots");
  for (NodeId n : p.waits.items)
    if (n.value >= p.nodes()) return broken("a wait for a node that does not exist");
  for (NodeId n : p.issue.items)
    if (n.value >= p.nodes()) return broken("an issue of a node that does not exist");
  for (const Program::Slots& slots : p.slots)
    if (slots.by_payload.size() > p.payloads.size()) return broken("slots without a payload");
  return {};
}

bool slot_exists(const Program& p, DeviceId d, std::uint16_t payload, std::uint32_t slot) {
  const std::vector<std::uint32_t>& counts = p.slots[d].by_payload;
  return payload < counts.size() && slot < counts[payload];
}

Result<void> check_references(const Program& p, const Plan& plan) {
  for (const Edge& edge : p.edges)
    if (edge.source.value >= p.table.devices() || edge.target.value >= p.table.devices() || edge.source == edge.target)
      return broken("an edge between devices that do not exist");
  for (const Message& m : p.messages) {
    if (m.edge.value >= p.edges.size() || m.producer >= p.table.size() || m.consumer >= p.table.size() ||
        m.payload >= p.payloads.size())
      return broken("a message");
    const Edge& edge = p.edges[m.edge.value];
    if (plan.device[m.producer] != edge.source || plan.device[m.consumer] != edge.target)
      return broken("a message whose ends lie elsewhere");
    if (m.out_slot == kNone && m.in_slot == kNone) continue;
    if (!slot_exists(p, edge.source, m.payload, m.out_slot) || !slot_exists(p, edge.target, m.payload, m.in_slot))
      return broken("a message's slot");
  }
  for (std::uint32_t position = 0; position < p.table.size(); ++position) {
    const DeviceId d = plan.device[position];
    const auto exists = [&](const SlotUse& use) { return slot_exists(p, d, use.payload, use.slot); };
    // An op that stands before one that it needs, in a program lowered unchecked, reads from no slot: it waits in vain.
    const auto readable = [&](const SlotUse& use) {
      return exists(use) || (p.order.empty() && use.slot == kNone && use.payload < p.payloads.size());
    };
    if (!std::ranges::all_of(p.reads[position], readable) || !std::ranges::all_of(p.writes[position], exists))
      return broken("a slot of " + p.table.ops.text(p.table.entries[position]));
    if (p.stash[position] != kNone && p.stash[position] >= p.slots[d].stash) return broken("a stash");
  }
  return {};
}

void find_followers(const Program& p, Plan& plan) {
  const std::uint32_t nodes = p.nodes();
  plan.pending.assign(nodes, 0);
  plan.previous.assign(p.messages.size(), MessageId());
  plan.next.assign(p.messages.size(), MessageId());
  std::vector<MessageId> last_on_edge(p.edges.size());
  for (std::uint32_t i = 0; i < p.messages.size(); ++i) {
    MessageId& last = last_on_edge[p.messages[i].edge.value];
    plan.previous[i] = last;
    if (last.valid()) plan.next[last.value] = MessageId(i);
    last = MessageId(i);
  }
  const auto each_wait = [&](const auto& visit) {
    for (std::uint32_t n = 0; n < nodes; ++n) {
      for (NodeId before : p.waits[n]) visit(before, NodeId(n));
      if (p.is_message(NodeId(n))) visit(NodeId(p.message(NodeId(n)).producer), NodeId(n));
    }
  };
  plan.followers.first.assign(nodes + std::size_t{1}, 0);
  each_wait([&](NodeId before, NodeId after) {
    ++plan.followers.first[before.value + 1];
    ++plan.pending[after.value];
  });
  for (std::uint32_t n = 0; n < nodes; ++n) plan.followers.first[n + 1] += plan.followers.first[n];
  plan.followers.items.resize(plan.followers.first.back());
  std::vector<std::uint32_t> fill(plan.followers.first.begin(), plan.followers.first.end() - 1);
  each_wait([&](NodeId before, NodeId after) { plan.followers.items[fill[before.value]++] = after; });
  for (std::uint32_t i = 0; i < p.messages.size(); ++i)
    if (plan.previous[i].valid()) ++plan.pending[p.node(MessageId(i)).value];
}

// Pairs of one device; blocks over several are reductions, whose meetings follow from the ops.
Result<void> find_pairs(const Program& p, Plan& plan) {
  plan.together.assign(p.table.size(), 1);
  for (std::uint32_t i = 0; i < p.table.blocks.size(); ++i) {
    const auto block = p.table.blocks[i];
    for (std::uint32_t position : block)
      if (position >= p.table.size()) return broken("a block of an op that does not exist");
    const auto is_elsewhere = [&](std::uint32_t position) { return plan.device[position] != plan.device[block[0]]; };
    if (block.size() < 2) return broken("a block of one op");
    if (std::ranges::any_of(block, is_elsewhere)) continue;
    if (block.size() != 2 || block[1] != block[0] + 1 || plan.together[block[0]] != 1 ||
        (block[0] > 0 && plan.together[block[0] - 1] != 1))
      return broken("a pair whose ops do not stand next to each other");
    plan.together[block[0]] = 2;
  }
  return {};
}

// Runs the counters of a run without running anything.
Result<void> check_finishes(const Program& p, const Plan& plan) {
  const Lanes lanes(p.table);
  std::vector<std::uint32_t> pending = plan.pending;
  const std::uint32_t ops = p.table.size();
  // Entries that run as one end when the last of them may start: pairs of a lane, and reductions.
  const auto is_second = [&](std::uint32_t position) { return position > 0 && plan.together[position - 1] == 2; };
  for (std::uint32_t position = 0; position < ops; ++position)
    if (lanes.previous(position) != Lanes::kNone && !is_second(position)) ++pending[position];
  std::vector<std::size_t> missing;
  for (std::uint32_t i = 0; i < plan.meetings.size(); ++i) missing.push_back(plan.meetings[i].size());
  std::vector<std::uint8_t> may_start(ops, 0);
  std::vector<NodeId> ready;
  std::vector<NodeId> ended;
  for (std::uint32_t n = 0; n < p.nodes(); ++n)
    if (pending[n] == 0) ready.push_back(NodeId(n));
  std::uint32_t done = 0;
  const auto release = [&](NodeId n) {
    if (--pending[n.value] == 0) ready.push_back(n);
  };
  const auto start = [&](NodeId n) {
    if (p.is_message(n)) return ended.push_back(n);
    may_start[n.value] = 1;
    const std::uint32_t first = is_second(n.value) ? n.value - 1 : n.value;
    const std::uint32_t meeting = plan.meeting_of.empty() ? kNone : plan.meeting_of[n.value];
    if (meeting != kNone) {
      if (--missing[meeting] != 0) return;
      for (std::uint32_t position : plan.meetings[meeting]) ended.push_back(NodeId(position));
    } else if (plan.together[first] == 1) {
      ended.push_back(n);
    } else if (may_start[first] != 0 && may_start[first + 1] != 0) {
      ended.push_back(NodeId(first));
      ended.push_back(NodeId(first + 1));
    }
  };
  while (!ready.empty() || !ended.empty()) {
    if (ended.empty()) {
      const NodeId next = ready.back();
      ready.pop_back();
      start(next);
      continue;
    }
    const NodeId n = ended.back();
    ended.pop_back();
    ++done;
    for (NodeId follower : plan.followers[n.value]) release(follower);
    if (p.is_message(n)) {
      const MessageId next = plan.next[p.message_of(n).value];
      if (next.valid()) release(p.node(next));
    } else if (const std::uint32_t next = lanes.next(n.value); next != Lanes::kNone && !is_second(next)) {
      release(NodeId(next));
    }
  }
  if (done == p.nodes()) return {};
  for (std::uint32_t n = 0; n < p.nodes(); ++n)
    if (pending[n] != 0) return Failure{"the program cannot finish: " + describe(p, NodeId(n)) + " waits for ever"};
  return Failure{"the program cannot finish: ops that run as one wait for each other"};
}

void find_expected(const Program& p, Plan& plan) {
  plan.expected.assign(p.reads.items.size(), OpId());
  std::vector<std::vector<std::uint32_t>> arrivals(p.table.size());
  for (std::uint32_t i = 0; i < p.messages.size(); ++i) arrivals[p.messages[i].consumer].push_back(i);
  for (std::uint32_t d = 0; d < p.table.devices(); ++d) {
    std::vector<std::vector<OpId>> holds;
    for (std::uint32_t count : p.slots[DeviceId(d)].by_payload) holds.emplace_back(count);
    for (std::uint32_t position = p.table.first[d]; position < p.table.first[d + 1]; ++position) {
      for (std::uint32_t i : arrivals[position]) {
        const Message& m = p.messages[i];
        if (m.in_slot != kNone) holds[m.payload][m.in_slot] = p.table.entries[m.producer];
      }
      for (std::uint32_t i = p.reads.first[position]; i < p.reads.first[position + 1]; ++i)
        if (p.reads.items[i].slot != kNone) plan.expected[i] = holds[p.reads.items[i].payload][p.reads.items[i].slot];
      for (const SlotUse& use : p.writes[position]) holds[use.payload][use.slot] = p.table.entries[position];
    }
  }
}

// What is done for an op of this kind, if stages compute.
Work work_of(const OpSet& ops, const OpKind& kind) {
  const auto one = [](Operation operation) {
    switch (operation) {
      case Operation::Forward:
      case Operation::InputGradient:
      case Operation::WeightGradient:
      case Operation::Backward:
      case Operation::Recompute: return Work::Train;
      case Operation::ReduceGradient: return Work::Reduce;
      case Operation::Optimizer: return Work::Update;
      case Operation::Declared: return Work::Wait;
    }
    return Work::Wait;
  };
  for (KindId part : kind.parts)
    if (one(ops.kinds()[part].operation) == Work::Train) return Work::Train;
  return one(kind.operation);
}

Result<void> find_work(const Program& p, bool computes, Plan& plan) {
  const OpSet& ops = p.table.ops;
  std::vector<Work> works(ops.kinds().size(), Work::Wait);
  for (std::uint32_t k = 0; k < works.size() && computes; ++k) works[k] = work_of(ops, ops.kinds()[KindId(k)]);
  std::vector<std::uint8_t> used(works.size(), 0);
  plan.work.resize(p.table.size());
  for (std::uint32_t position = 0; position < p.table.size(); ++position) {
    const KindId kind = ops.kind_of(p.table.entries[position]);
    used[kind.value] = 1;
    plan.work[position] = works[kind.value];
  }
  for (std::uint32_t k = 0; k < used.size(); ++k) {
    const OpKind& kind = ops.kinds()[KindId(k)];
    if (used[k] != 0 && !kind.stream.empty() && (works[k] == Work::Train || works[k] == Work::Update))
      return Failure{kind.name + " stands on stream " + kind.stream + "; stages compute on their device's own"};
    if (used[k] != 0 && works[k] == Work::Wait && kind.operation == Operation::Declared)
      plan.declared.push_back(kind.name);
  }
  return {};
}

void find_payloads(const Program& p, Plan& plan) {
  for (std::uint16_t i = 1; i < p.payloads.size(); ++i) {
    if (p.payloads[i] == "activation") plan.activation = i;
    if (p.payloads[i] == "gradient") plan.gradient = i;
    if (p.payloads[i] == "weights") plan.weights = i;
  }
}

void find_stashes(const Program& p, Plan& plan) {
  const OpSet& ops = p.table.ops;
  plan.stash.assign(plan.model.triples(), kNone);
  for (std::uint32_t position = 0; position < p.table.size(); ++position) {
    const OpId op = p.table.entries[position];
    if (plan.work[position] != Work::Train || ops.kind(op).operation != Operation::Forward) continue;
    plan.stash[plan.model.triple(ops.stage(op), ops.microbatch(op), slice_of(ops, op))] = p.stash[position];
  }
}

}  // namespace

Result<Plan> make_plan(const Program& program, bool computes) {
  if (Result<void> sizes = check_sizes(program); !sizes) return sizes.failure();
  Plan plan;
  plan.device.resize(program.table.size());
  for (std::uint32_t d = 0; d < program.table.devices(); ++d)
    for (std::uint32_t i = program.table.first[d]; i < program.table.first[d + 1]; ++i) plan.device[i] = DeviceId(d);
  if (Result<void> references = check_references(program, plan); !references) return references.failure();
  find_followers(program, plan);
  if (Result<void> pairs = find_pairs(program, plan); !pairs) return pairs.failure();
  find_expected(program, plan);
  if (Result<void> work = find_work(program, computes, plan); !work) return work.failure();
  const auto check = [&]() -> Result<void> {
    return program.order.empty() ? Result<void>() : check_finishes(program, plan);
  };
  // First of all, since what else may be wrong with a program that cannot finish is of less account.
  if (Result<void> finishes = check(); !finishes) return finishes.failure();
  if (!computes) return plan;
  find_payloads(program, plan);
  Result<Partition> model = find_partition(program, plan);
  if (!model) return model.failure();
  plan.model = std::move(*model);
  find_stashes(program, plan);
  if (Result<void> updates = find_updates(program, plan); !updates) return updates.failure();
  if (Result<void> finishes = check(); !finishes) return finishes.failure();
  return plan;
}

std::string describe(const Program& program, NodeId node) {
  const OpSet& ops = program.table.ops;
  if (!program.is_message(node))
    return ops.text(program.table.entries[node.value]) + " on device " +
           std::to_string(program.table.device_of(node.value).value);
  const Message& m = program.message(node);
  const Edge& edge = program.edges[m.edge.value];
  const std::string what = m.payload == 0 ? "message" : program.payloads[m.payload];
  return what + " of " + ops.text(program.table.entries[m.producer]) + " from device " +
         std::to_string(edge.source.value) + " to device " + std::to_string(edge.target.value);
}

}  // namespace stave
