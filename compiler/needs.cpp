#include "compiler/needs.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/needs_cycle.h"
#include "compiler/weights.h"

namespace stave {

namespace {

using Index = std::array<std::uint32_t, kMaxIndices>;

/// One index of what is needed, in terms of the indices of the op that needs.
struct IndexPattern {
  enum class Kind : std::uint8_t { Fixed, Shifted, Star, Evaluated, Routed };
  Kind kind = Kind::Fixed;
  /// Shifted: this index of the op ... Routed: the stage that many steps on along the route of ...
  std::uint32_t from = 0;
  /// ... plus this; Fixed: this.
  std::int64_t offset = 0;
  /// ... this microbatch of the op.
  std::uint32_t microbatch = 0;
  TermId term;
};

struct NeedPattern {
  const NeedCode* code = nullptr;
  /// The op that needs.
  std::uint32_t kind = 0;
  std::uint16_t payload = 0;
  /// The op that is needed, or the parts of a fused one.
  std::vector<std::uint32_t> kinds;
  std::array<IndexPattern, kMaxIndices> indices;
  std::uint32_t count = 0;
  /// All indices are fixed or shifted, and there are no replicas to choose from.
  bool plain = true;
  /// What is needed runs on every replica of its stage: it is meant on the device of the op.
  bool on_replica = false;
  /// The op runs on every replica of its stage: on each it needs what ran there.
  bool of_replica = false;
  /// Some index is evaluated: the variables of the op must be set.
  bool evaluated = false;
  /// Never inside its list.
  bool never = false;
  /// The same indices in the same lists, some of them shifted: the number of what is needed is that of the op plus this.
  bool straight = false;
  std::int64_t distance = 0;
  /// What it takes to be inside: index `from` of the op plus `offset` below `extent`.
  struct Edge {
    std::uint32_t from = 0;
    std::int64_t offset = 0;
    std::uint64_t extent = 0;
  };
  std::array<Edge, kMaxIndices> edges;
  std::uint32_t edge_count = 0;
  std::uint32_t first = 0;
};

class Needs {
 public:
  Needs(Evaluator& evaluator, const World& world) : evaluator_(evaluator), world_(world) {}

  std::vector<NeedPattern> patterns(std::uint32_t kind) const {
    const Code& code = evaluator_.code();
    std::vector<NeedPattern> result;
    if (code.ops[kind].parts.empty())
      for (const NeedCode& need : code.ops[kind].needs) result.push_back(pattern(kind, need));
    // What a fused op needs beyond its parts, its first part needs.
    for (const OpCode& whole : code.ops)
      if (!whole.parts.empty() && whole.parts.front() == kind)
        for (const NeedCode& need : whole.needs) result.push_back(pattern(kind, need));
    add_weights(kind, result);
    // Of an optional op that is left out nothing waits.
    std::erase_if(result, [&](const NeedPattern& each) { return each.never || !runs(each); });
    return result;
  }

  /// What works on the activations of a forward reads the weights that the forward received.
  void add_weights(std::uint32_t kind, std::vector<NeedPattern>& result) const {
    const Code& code = evaluator_.code();
    const OpKind& own = world_.ops.kinds()[KindId(kind)];
    const KindId forward = world_.ops.find(Operation::Forward);
    if (!own.parts.empty() || !info(own.operation).uses_activation || !forward.valid() || forward.value == kind) return;
    const auto same_role = [](const OpIndex& a, const OpIndex& b) { return a.role == b.role; };
    if (!std::equal(own.indices.begin(), own.indices.end(), world_.ops.kinds()[forward].indices.begin(),
                    world_.ops.kinds()[forward].indices.end(), same_role))
      return;
    for (const NeedCode& need : code.ops[forward.value].needs)
      if (need.message == kWeightsPayload) result.push_back(pattern(kind, need));
  }

  bool runs(const NeedPattern& need) const {
    return std::any_of(need.kinds.begin(), need.kinds.end(), [&](std::uint32_t kind) {
      return !world_.ops.kinds()[KindId(kind)].optional || world_.runs[kind];
    });
  }

  /// Calls `visit(op number)` for each op that `need` of the op with these indices comes to.
  template <class Visit>
  void each(const NeedPattern& need, const Index& at, std::uint32_t own, const Visit& visit) {
    if (need.straight) {
      for (std::uint32_t i = 0; i < need.edge_count; ++i) {
        const NeedPattern::Edge& edge = need.edges[i];
        if (static_cast<std::uint64_t>(at[edge.from] + edge.offset) >= edge.extent) return;
      }
      visit(static_cast<std::uint32_t>(need.first + own + need.distance));
      return;
    }
    if (need.plain) {
      const OpKind& first = world_.ops.kinds()[KindId(need.kinds.front())];
      const Index& strides = world_.strides[need.kinds.front()];
      std::uint32_t number = 0;
      for (std::uint32_t i = 0; i < need.count; ++i) {
        const IndexPattern& pattern = need.indices[i];
        const std::int64_t value =
            pattern.kind == IndexPattern::Kind::Shifted ? at[pattern.from] + pattern.offset : pattern.offset;
        if (static_cast<std::uint64_t>(value) >= first.indices[i].extent) return;
        number += static_cast<std::uint32_t>(value) * strides[i];
      }
      give(need, number, visit);
      return;
    }
    if (need.evaluated)
      for (std::size_t i = 0; i < need.code->slots.size(); ++i)
        if (need.code->slots[i] != kNoSlot) evaluator_.set(need.code->slots[i], Datum::whole(at[i]));
    const Arena::Mark mark = evaluator_.arena().mark();
    if (need.on_replica || need.of_replica) {
      const std::uint32_t device = world_.device(need.kind, at, own);
      several(need, at, 0, 0, [&](std::uint32_t op) { visit_replica(need, device, op, visit); });
    } else {
      several(need, at, 0, 0, visit);
    }
    evaluator_.arena().release(mark);
  }

 private:
  NeedPattern pattern(std::uint32_t kind, const NeedCode& need) const {
    const Code& code = evaluator_.code();
    NeedPattern result;
    result.code = &need;
    result.kind = kind;
    result.payload = static_cast<std::uint16_t>(
        std::find(code.payloads.begin(), code.payloads.end(), need.message) - code.payloads.begin());
    result.kinds = code.ops[need.op].parts;
    if (result.kinds.empty()) result.kinds = {need.op};
    result.count = static_cast<std::uint32_t>(need.indices.size());
    const OpKind& source = world_.ops.kinds()[KindId(kind)];
    const OpKind& target = world_.ops.kinds()[KindId(result.kinds.front())];
    for (std::uint32_t i = 0; i < result.count; ++i) {
      IndexPattern& to = result.indices[i] = index_pattern(need.indices[i], need.slots);
      follow_route(source, target.indices[i].role, to);
      if (to.kind != IndexPattern::Kind::Fixed && to.kind != IndexPattern::Kind::Shifted) result.plain = false;
      if (to.kind == IndexPattern::Kind::Evaluated) result.evaluated = true;
      const std::int64_t extent = target.indices[i].extent;
      const std::int64_t least = to.offset;
      const std::int64_t most =
          to.kind == IndexPattern::Kind::Shifted ? to.offset + source.indices[to.from].extent - 1 : to.offset;
      const bool known = to.kind == IndexPattern::Kind::Fixed || to.kind == IndexPattern::Kind::Shifted;
      if (known && (most < 0 || least >= extent)) result.never = true;
    }
    result.on_replica = target.extent(IndexRole::Replica) > 0;
    result.of_replica = source.extent(IndexRole::Replica) > 0 &&
                        (result.on_replica || world_.places[result.kinds.front()].rule == KindPlace::Rule::Stage);
    if (result.on_replica || result.of_replica) result.plain = false;
    find_straight(kind, result);
    return result;
  }

  /// The neighbours of a stage are those on the route of the microbatch.
  void follow_route(const OpKind& source, IndexRole role, IndexPattern& pattern) const {
    if (!world_.routes.given() || role != IndexRole::Stage || pattern.kind != IndexPattern::Kind::Shifted ||
        pattern.offset == 0 || source.indices[pattern.from].role != IndexRole::Stage)
      return;
    for (std::uint32_t i = 0; i < source.indices.size(); ++i) {
      if (source.indices[i].role != IndexRole::Microbatch) continue;
      pattern.kind = IndexPattern::Kind::Routed;
      pattern.microbatch = i;
    }
  }

  /// `op` is the first replica of what is needed, if it has any.
  template <class Visit>
  void visit_replica(const NeedPattern& need, std::uint32_t device, std::uint32_t op, const Visit& visit) const {
    const OpName name = world_.ops.name(OpId(op));
    const KindPlace& place = world_.places[name.kind.value];
    if (place.rule == KindPlace::Rule::Replica) {
      const std::uint32_t replica = world_.placement.replica(name.index[place.index], device);
      // Where the stage has no replica on the device of the op, it is the first that counts.
      visit(op + (replica == Placement::kNone ? 0 : replica));
      return;
    }
    const std::uint32_t own = op - world_.ops.kinds()[name.kind].first;
    if (!need.of_replica || world_.device(name.kind.value, name.index, own) == device) visit(op);
  }

  void find_straight(std::uint32_t kind, NeedPattern& need) const {
    const std::uint32_t target = need.kinds.front();
    if (need.never || !need.plain || need.kinds.size() != 1 || world_.partial[target]) return;
    const std::vector<OpIndex>& from = world_.ops.kinds()[KindId(kind)].indices;
    const std::vector<OpIndex>& to = world_.ops.kinds()[KindId(target)].indices;
    if (from.size() != to.size()) return;
    for (std::uint32_t i = 0; i < need.count; ++i) {
      const IndexPattern& pattern = need.indices[i];
      const bool same = from[i].extent == to[i].extent;
      const bool zero = pattern.kind == IndexPattern::Kind::Fixed && to[i].extent == 1;
      const bool own = pattern.kind == IndexPattern::Kind::Shifted && pattern.from == i;
      if (!same || (!own && !zero)) return;
      if (!own || pattern.offset == 0) continue;
      need.distance += pattern.offset * world_.strides[target][i];
      need.edges[need.edge_count++] = {i, pattern.offset, to[i].extent};
    }
    need.first = world_.ops.kinds()[KindId(target)].first;
    need.straight = true;
  }

  IndexPattern index_pattern(TermId id, const std::vector<std::uint32_t>& slots) const {
    const Code& code = evaluator_.code();
    const Term& term = code[id];
    IndexPattern result;
    result.kind = IndexPattern::Kind::Evaluated;
    result.term = id;
    const auto own = [&](const Term& of) -> bool {
      if (of.kind != TermKind::Slot) return false;
      const auto found = std::find(slots.begin(), slots.end(), of.target);
      if (found == slots.end()) return false;
      result.from = static_cast<std::uint32_t>(found - slots.begin());
      return true;
    };
    // Offsets far outside every list are left to be evaluated.
    const auto small = [](const Term& of) {
      return of.kind == TermKind::Number && of.value.whole() && of.value <= Rational(kMaxOps) &&
             of.value >= Rational(-std::int64_t(kMaxOps));
    };
    if (term.kind == TermKind::Star) {
      result.kind = IndexPattern::Kind::Star;
    } else if (small(term)) {
      result.kind = IndexPattern::Kind::Fixed;
      result.offset = term.value.numerator();
    } else if (own(term)) {
      result.kind = IndexPattern::Kind::Shifted;
    } else if ((term.kind == TermKind::Add || term.kind == TermKind::Subtract) && own(code[code.operand(term, 0)]) &&
               small(code[code.operand(term, 1)])) {
      const std::int64_t offset = code[code.operand(term, 1)].value.numerator();
      result.kind = IndexPattern::Kind::Shifted;
      result.offset = term.kind == TermKind::Add ? offset : -offset;
    }
    return result;
  }

  template <class Visit>
  void give(const NeedPattern& need, std::uint32_t number, const Visit& visit) const {
    for (std::uint32_t kind : need.kinds) {
      const std::uint32_t op = world_.ops.kinds()[KindId(kind)].first + number;
      if (world_.op_exists(kind, op)) visit(op);
    }
  }

  template <class Visit>
  void several(const NeedPattern& need, const Index& at, std::uint32_t i, std::uint32_t number, const Visit& visit) {
    if (i == need.count) {
      give(need, number, visit);
      return;
    }
    const IndexPattern& pattern = need.indices[i];
    const std::int64_t extent = world_.ops.kinds()[KindId(need.kinds.front())].indices[i].extent;
    const std::uint32_t stride = world_.strides[need.kinds.front()][i];
    const auto go_on = [&](std::int64_t value) {
      if (value < 0 || value >= extent) return;
      several(need, at, i + 1, number + static_cast<std::uint32_t>(value) * stride, visit);
    };
    switch (pattern.kind) {
      case IndexPattern::Kind::Fixed: go_on(pattern.offset); return;
      case IndexPattern::Kind::Shifted: go_on(at[pattern.from] + pattern.offset); return;
      case IndexPattern::Kind::Routed:
        if (const std::uint32_t stage = world_.routes.step(at[pattern.from], at[pattern.microbatch], pattern.offset);
            stage != Routes::kNone)
          go_on(stage);
        return;
      case IndexPattern::Kind::Star:
        for (std::int64_t v = 0; v < extent; ++v) go_on(v);
        return;
      case IndexPattern::Kind::Evaluated: break;
    }
    const auto go_on_with = [&](const Datum& datum) {
      if (!datum.is_whole())
        evaluator_.fail("not-whole", evaluator_.code().spans[pattern.term],
                        fmt::format("an index must be whole, and is {}", datum.text()));
      go_on(datum.integer());
    };
    const Datum datum = evaluator_.value(pattern.term);
    if (datum.is_list()) {
      for (std::int64_t k = 0; k < datum.length(); ++k) {
        evaluator_.step(evaluator_.code().spans[pattern.term]);
        go_on_with(datum[k]);
      }
    } else {
      evaluator_.step(evaluator_.code().spans[pattern.term]);
      go_on_with(datum);
    }
  }

  Evaluator& evaluator_;
  const World& world_;
};

/// The rows of a kind all of whose needs are straight: the common case, and the one that has to be fast.
void straight_rows(const OpKind& kind, const std::vector<NeedPattern>& patterns, Rows<Dependency>& rows) {
  const std::size_t before = rows.items.size();
  rows.items.resize(before + patterns.size() * std::size_t(kind.count));
  const std::size_t first_row = rows.first.size();
  rows.first.resize(first_row + kind.count);
  Dependency* out = rows.items.data() + before;
  Index at = {};
  for (std::uint32_t n = 0; n < kind.count; ++n) {
    for (const NeedPattern& need : patterns) {
      bool inside = true;
      for (std::uint32_t i = 0; i < need.edge_count; ++i)
        inside = inside && static_cast<std::uint64_t>(at[need.edges[i].from] + need.edges[i].offset) <
                               need.edges[i].extent;
      if (!inside) continue;
      out->op = OpId(static_cast<std::uint32_t>(need.first + n + need.distance));
      out->payload = need.payload;
      ++out;
    }
    rows.first[first_row + n] = static_cast<std::uint32_t>(out - rows.items.data());
    for (std::size_t i = kind.indices.size(); i-- > 0;) {
      if (++at[i] < kind.indices[i].extent) break;
      at[i] = 0;
    }
  }
  rows.items.resize(static_cast<std::size_t>(out - rows.items.data()));
}

/// Names the indices of an op while what it needs is evaluated.
class InLoops {
 public:
  InLoops(Evaluator& evaluator, const OpCode& op) : evaluator_(evaluator), count_(op.indices.size()) {
    for (const IndexCode& index : op.indices) evaluator_.enter_loop(index.slot);
  }
  ~InLoops() {
    for (std::size_t i = 0; i < count_; ++i) evaluator_.leave_loop();
  }
  InLoops(const InLoops&) = delete;
  InLoops& operator=(const InLoops&) = delete;

 private:
  Evaluator& evaluator_;
  std::size_t count_;
};

}  // namespace

Rows<Dependency> find_needs(Evaluator& evaluator, const World& world) {
  Needs needs(evaluator, world);
  Rows<Dependency> rows;
  rows.first.reserve(world.ops.size() + std::size_t(1));
  std::size_t expected = 0;
  std::vector<std::vector<NeedPattern>> patterns;
  for (std::uint32_t k = 0; k < world.ops.kinds().size(); ++k) {
    const OpKind& kind = world.ops.kinds()[KindId(k)];
    const bool left_out = kind.optional && !world.runs[k];
    patterns.push_back(left_out || !kind.parts.empty() ? std::vector<NeedPattern>() : needs.patterns(k));
    for (const NeedPattern& each : patterns.back())
      if (each.plain) expected += each.kinds.size() * kind.count;
  }
  rows.items.reserve(std::min(expected, kMaxNeeds));
  std::vector<KindNeed> kinds;
  for (std::uint32_t k = 0; k < patterns.size(); ++k)
    for (const NeedPattern& each : patterns[k])
      for (std::uint32_t needed : each.kinds) kinds.push_back({k, needed, each.straight, each.distance});
  for (std::uint32_t k = 0; k < world.ops.kinds().size(); ++k) {
    const OpKind& kind = world.ops.kinds()[KindId(k)];
    const bool straight = !world.partial[k] && std::all_of(patterns[k].begin(), patterns[k].end(),
                                                           [](const NeedPattern& each) { return each.straight; });
    if (straight && patterns[k].size() * std::size_t(kind.count) + rows.items.size() <= kMaxNeeds) {
      straight_rows(kind, patterns[k], rows);
      continue;
    }
    const InLoops in_loops(evaluator, evaluator.code().ops[k]);
    bool evaluated = false;
    for (const NeedPattern& each : patterns[k]) evaluated = evaluated || !each.plain;
    Index at = {};
    for (std::uint32_t n = 0; n < kind.count; ++n) {
      if (!patterns[k].empty() && world.op_exists(k, kind.first + n)) {
        if (evaluated)
          // That of a replica has no name.
          for (std::size_t i = 0; i < evaluator.code().ops[k].indices.size(); ++i)
            evaluator.set(evaluator.code().ops[k].indices[i].slot, Datum::whole(at[i]));
        for (const NeedPattern& need : patterns[k])
          needs.each(need, at, n, [&](std::uint32_t op) {
            rows.items.push_back({OpId(op), need.payload});
            if (rows.items.size() > kMaxNeeds)
              evaluator.fail("too-many", need.code->span,
                             fmt::format("`{}` needs too much: more than {} dependencies in all", kind.name, kMaxNeeds));
          });
      }
      rows.end_row();
      for (std::size_t i = kind.indices.size(); i-- > 0;) {
        if (++at[i] < kind.indices[i].extent) break;
        at[i] = 0;
      }
    }
  }
  refuse_cycles(evaluator, world, kinds, rows);
  return rows;
}

Span find_need(Evaluator& evaluator, const World& world, OpId op, OpId needed) {
  const OpName name = world.ops.name(op);
  Needs needs(evaluator, world);
  for (const NeedPattern& need : needs.patterns(name.kind.value)) {
    bool found = false;
    needs.each(need, name.index, op.value - world.ops.kinds()[name.kind].first, [&](std::uint32_t each) { found = found || each == needed.value; });
    if (found) return need.code->span;
  }
  return Span();
}

}  // namespace stave
