#include "executor/replicate.h"

#include <algorithm>
#include <array>

namespace stave {

namespace {

class Replicator {
 public:
  Replicator(const Program& program, std::uint32_t copies) : from_(program), copies_(copies) {}

  Result<Program> make() {
    if (Result<void> kinds = make_kinds(); !kinds) return kinds.failure();
    to_.sizes = from_.sizes;
    to_.payloads = from_.payloads;
    repeat(to_.sizes.microbatches);
    if (from_.sizes.slices.size() > 1) repeat(to_.sizes.slices);
    for (std::uint32_t c = 0; c < copies_; ++c) make_copy(c);
    for (NodeId n : from_.order)
      for (std::uint32_t c = 0; c < copies_; ++c) to_.order.push_back(node(n, c));
    make_waits();
    return std::move(to_);
  }

 private:
  template <class T>
  void repeat(std::vector<T>& values) const {
    const std::size_t size = values.size();
    for (std::uint32_t c = 1; c < copies_; ++c)
      for (std::size_t i = 0; i < size; ++i) values.push_back(values[i]);
  }

  std::uint32_t position(std::uint32_t p, std::uint32_t copy) const { return p + copy * from_.table.size(); }
  NodeId node(NodeId n, std::uint32_t copy) const {
    if (!from_.is_message(n)) return NodeId(position(n.value, copy));
    const auto messages = static_cast<std::uint32_t>(from_.messages.size());
    return NodeId(copies_ * from_.table.size() + copy * messages + from_.message_of(n).value);
  }

  // Kinds have as many microbatches, and devices, more; those of an op of one copy are shifted.
  Result<void> make_kinds() {
    const OpSet& ops = from_.table.ops;
    if (std::uint64_t{from_.nodes()} * copies_ >= kMaxOps)
      return Failure{std::to_string(copies_) + " replicas of the schedule have too many ops"};
    for (OpId op : from_.table.entries)
      if (ops.microbatch(op) == OpId::kNone)
        return Failure{ops.text(op) + " belongs to no microbatch, so the schedule cannot be replicated: with --replicas "
                                      "gradients are summed and weights updated at the end of a step"};
    for (OpKind kind : ops.kinds()) {
      for (OpIndex& index : kind.indices)
        if (index.role == IndexRole::Microbatch || index.role == IndexRole::Device) index.extent *= copies_;
      if (!to_.table.ops.add(std::move(kind)))
        return Failure{std::to_string(copies_) + " replicas of the schedule have too many ops"};
    }
    return {};
  }

  OpId op(OpId from, std::uint32_t copy) const {
    const OpName name = from_.table.ops.name(from);
    const OpKind& kind = from_.table.ops.kinds()[name.kind];
    std::array<std::uint32_t, kMaxIndices> index = name.index;
    for (std::size_t i = 0; i < kind.indices.size(); ++i)
      if (kind.indices[i].role == IndexRole::Microbatch || kind.indices[i].role == IndexRole::Device)
        index[i] += copy * kind.indices[i].extent;
    return to_.table.ops.id(name.kind, std::span(index).first(kind.indices.size()));
  }

  template <class T>
  void append(const Rows<T>& from, Rows<T>& to, const auto& change) const {
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (const T& item : from[i]) to.items.push_back(change(item));
      to.end_row();
    }
  }

  void make_copy(std::uint32_t c) {
    const auto same = [](const auto& item) { return item; };
    const std::uint32_t devices = from_.table.devices();
    for (OpId each : from_.table.entries) to_.table.entries.push_back(op(each, c));
    for (std::uint32_t d = 0; d < devices; ++d) to_.table.first.push_back(position(from_.table.first[d + 1], c));
    append(from_.table.blocks, to_.table.blocks, [&](std::uint32_t p) { return position(p, c); });
    const auto edges = static_cast<std::uint32_t>(from_.edges.size());
    for (const Edge& edge : from_.edges)
      to_.edges.push_back({DeviceId(edge.source.value + c * devices), DeviceId(edge.target.value + c * devices)});
    for (Message m : from_.messages) {
      m.producer = position(m.producer, c);
      m.consumer = position(m.consumer, c);
      m.last_consumer = position(m.last_consumer, c);
      m.edge = EdgeId(m.edge.value + c * edges);
      to_.messages.push_back(m);
    }
    append(from_.issue, to_.issue, [&](NodeId n) { return node(n, c); });
    append(from_.reads, to_.reads, same);
    append(from_.writes, to_.writes, same);
    const auto add_all = [](const auto& more, auto& to) { to.insert(to.end(), more.begin(), more.end()); };
    add_all(from_.stash, to_.stash);
    add_all(from_.reads_version, to_.reads_version);
    add_all(from_.makes_version, to_.makes_version);
    for (const Program::Slots& slots : from_.slots) to_.slots.push_back(slots);
  }

  void make_waits() {
    const auto add = [&](std::uint32_t from, std::uint32_t copy) {
      for (NodeId before : from_.waits[from]) to_.waits.items.push_back(node(before, copy));
      to_.waits.end_row();
    };
    for (std::uint32_t c = 0; c < copies_; ++c)
      for (std::uint32_t n = 0; n < from_.table.size(); ++n) add(n, c);
    for (std::uint32_t c = 0; c < copies_; ++c)
      for (std::uint32_t n = from_.table.size(); n < from_.nodes(); ++n) add(n, c);
  }

  const Program& from_;
  const std::uint32_t copies_;
  Program to_;
};

}  // namespace

Result<Program> replicate(const Program& program, std::uint32_t copies) {
  if (copies < 1 || copies > kMaxReplicas)
    return Failure{"a schedule has 1 to " + std::to_string(kMaxReplicas) + " replicas, not " + std::to_string(copies)};
  if (copies == 1) return program;
  return Replicator(program, copies).make();
}

std::vector<Ticks> replicate_by_node(const Program& program, const std::vector<Ticks>& values, std::uint32_t copies) {
  std::vector<Ticks> result;
  const auto ops = values.begin() + program.table.size();
  for (std::uint32_t c = 0; c < copies; ++c) result.insert(result.end(), values.begin(), ops);
  for (std::uint32_t c = 0; c < copies; ++c) result.insert(result.end(), ops, values.end());
  return result;
}

Timeline copy_of(const Program& program, const Timeline& replicated, std::uint32_t copies, std::uint32_t copy) {
  Timeline result;
  result.ticks_per_unit = replicated.ticks_per_unit;
  result.unit = replicated.unit;
  const std::uint32_t ops = program.table.size();
  const auto messages = static_cast<std::uint32_t>(program.messages.size());
  const auto take = [&](const std::vector<Ticks>& from, std::vector<Ticks>& to) {
    const auto begin = from.begin() + std::ptrdiff_t{copy} * ops;
    const auto first = from.begin() + std::ptrdiff_t{copies} * ops + std::ptrdiff_t{copy} * messages;
    to.assign(begin, begin + ops);
    to.insert(to.end(), first, first + messages);
  };
  take(replicated.start, result.start);
  take(replicated.end, result.end);
  return result;
}

}  // namespace stave
