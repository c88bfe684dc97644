#include "compiler/needs_cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>

#include "compiler/needs.h"

namespace stave {

namespace {

/// Most needs of a cycle that are written out.
constexpr std::size_t kMostLines = 12;

using Kinds = std::bitset<kMaxKinds>;

/// What is reached from each kind: in one step when it comes in, in any number when it goes out.
void close(std::vector<Kinds>& reached) {
  for (std::size_t k = 0; k < reached.size(); ++k)
    for (Kinds& from : reached)
      if (from[k]) from |= reached[k];
}

class Cycles {
 public:
  Cycles(Evaluator& evaluator, const World& world, const std::vector<KindNeed>& kinds, const Rows<Dependency>& needs)
      : evaluator_(evaluator), world_(world), kinds_(kinds), needs_(needs) {}

  void refuse() {
    const std::size_t count = world_.ops.kinds().size();
    std::vector<Kinds> reached(count);
    for (const KindNeed& need : kinds_) reached[need.kind].set(need.needed);
    close(reached);
    Kinds seen;
    for (std::uint32_t k = 0; k < count; ++k) {
      if (!reached[k][k] || seen[k]) continue;
      Kinds group;
      for (std::uint32_t other = 0; other < count; ++other) group[other] = reached[k][other] && reached[other][k];
      seen |= group;
      if (!lead_one_way(group)) search(group);
    }
    for (std::uint32_t k = 0; k < count; ++k) refuse_order_of_parts(KindId(k));
  }

 private:
  const OpKind& kind(std::uint32_t k) const { return world_.ops.kinds()[KindId(k)]; }

  /// True if numbers of ops rise along every need, or fall, and those that stay lead nowhere twice.
  bool lead_one_way(const Kinds& group) const {
    std::vector<Kinds> level(world_.ops.kinds().size());
    bool rises = false;
    bool falls = false;
    for (const KindNeed& need : kinds_) {
      if (!group[need.kind] || !group[need.needed]) continue;
      if (!need.straight) return false;
      rises = rises || need.distance > 0;
      falls = falls || need.distance < 0;
      if (need.distance == 0) level[need.kind].set(need.needed);
    }
    close(level);
    for (std::size_t k = 0; k < level.size(); ++k)
      if (level[k][k]) return false;
    return !(rises && falls);
  }

  /// Looks for a cycle among the ops of some kinds, depth first.
  void search(const Kinds& group) {
    enum class State : std::uint8_t { New, Open, Done };
    struct Visit {
      std::uint32_t op = 0;
      std::uint32_t next = 0;
    };
    std::vector<State> state(world_.ops.size(), State::New);
    std::vector<Visit> path;
    for (std::uint32_t k = 0; k < world_.ops.kinds().size(); ++k) {
      if (!group[k]) continue;
      for (std::uint32_t root = kind(k).first; root < kind(k).first + kind(k).count; ++root) {
        if (state[root] != State::New) continue;
        state[root] = State::Open;
        path.push_back({root, 0});
        while (!path.empty()) {
          Visit& visit = path.back();
          const auto row = needs_[visit.op];
          if (visit.next == row.size()) {
            state[visit.op] = State::Done;
            path.pop_back();
            continue;
          }
          const std::uint32_t needed = row[visit.next++].op.value;
          if (state[needed] == State::Open) say_cycle(shortest(needed));
          if (state[needed] == State::Done || !group[world_.ops.kind_of(OpId(needed)).value]) continue;
          state[needed] = State::Open;
          path.push_back({needed, 0});
        }
      }
    }
  }

  /// The shortest cycle through an op that lies on one: ops, each needing the next, the last the first.
  std::vector<std::uint32_t> shortest(std::uint32_t op) const {
    std::vector<std::uint32_t> before(world_.ops.size(), OpId::kNone);
    std::vector<std::uint32_t> met = {op};
    for (std::size_t i = 0; i < met.size(); ++i) {
      for (const Dependency& need : needs_[met[i]]) {
        if (need.op.value == op) {
          std::vector<std::uint32_t> cycle;
          for (std::uint32_t at = met[i]; at != op; at = before[at]) cycle.push_back(at);
          cycle.push_back(op);
          std::reverse(cycle.begin(), cycle.end());
          return cycle;
        }
        if (before[need.op.value] != OpId::kNone) continue;
        before[need.op.value] = met[i];
        met.push_back(need.op.value);
      }
    }
    return met;
  }

  std::string text(std::uint32_t op) const { return fmt::format("`{}`", world_.ops.text(OpId(op))); }

  static bool same(const Span& a, const Span& b) {
    return a.source == b.source && a.begin == b.begin && a.end == b.end;
  }

  /// The fused op that is needed at a place; empty if the op there is none.
  std::string fused_op(const Span& span) const {
    const Code& code = evaluator_.code();
    for (const OpCode& op : code.ops)
      for (const NeedCode& need : op.needs)
        if (same(need.span, span) && !code.ops[need.op].parts.empty()) return code.ops[need.op].name;
    return "";
  }

  static bool said(const std::vector<Span>& spans, const Span& span) {
    return std::any_of(spans.begin(), spans.end(), [&](const Span& each) { return same(each, span); });
  }

  [[noreturn]] void say_cycle(std::vector<std::uint32_t> cycle) {
    const auto declared = [&](std::size_t i) {
      return find_need(evaluator_, world_, OpId(cycle[i]), OpId(cycle[(i + 1) % cycle.size()]));
    };
    // It begins where the author has written something.
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      if (declared(i).source != evaluator_.code().source) continue;
      std::rotate(cycle.begin(), cycle.begin() + static_cast<std::ptrdiff_t>(i), cycle.end());
      break;
    }
    Diagnostic diagnostic;
    diagnostic.kind = "needs-itself";
    if (cycle.size() == 1) {
      diagnostic.primary.span = declared(0);
      const std::string whole = fused_op(diagnostic.primary.span);
      diagnostic.message = text(cycle[0]) + " needs itself";
      if (!whole.empty())
        diagnostic.message = fmt::format("{} needs `{}`, of which it is a part", text(cycle[0]), whole);
    } else {
      diagnostic.message = fmt::format("{} needs {}", text(cycle[0]), text(cycle[1]));
      for (std::size_t i = 1; i < cycle.size() && i <= kMostLines; ++i)
        diagnostic.message += i == kMostLines ? fmt::format(", and so on, in {} steps back to {}", cycle.size(),
                                                            text(cycle[0]))
                                              : fmt::format(", which needs {}", text(cycle[(i + 1) % cycle.size()]));
      std::vector<Span> spans;
      for (std::size_t i = 0; i < cycle.size() && i < kMostLines; ++i) {
        const Span span = declared(i);
        if (!span.valid() || said(spans, span)) continue;
        spans.push_back(span);
        Label label{span, fmt::format("{} needs {}", text(cycle[i]), text(cycle[(i + 1) % cycle.size()]))};
        if (spans.size() == 1)
          diagnostic.primary = std::move(label);
        else
          diagnostic.labels.push_back(std::move(label));
      }
    }
    diagnostic.notes.push_back("no order can run what waits for itself");
    evaluator_.report(std::move(diagnostic));
    throw Stop{};
  }

  void refuse_order_of_parts(KindId whole) {
    const std::vector<KindId>& parts = world_.ops.kinds()[whole].parts;
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t later = i + 1; later < parts.size(); ++later)
        for (const KindNeed& need : kinds_)
          if (need.kind == parts[i].value && need.needed == parts[later].value &&
              (!need.straight || need.distance == 0))
            refuse_later_part(whole, parts[i].value, parts[later].value);
  }

  void refuse_later_part(KindId whole, std::uint32_t part, std::uint32_t later) {
    for (std::uint32_t n = 0; n < kind(part).count; ++n) {
      const std::uint32_t op = kind(part).first + n;
      const OpId needed(kind(later).first + n);
      const auto row = needs_[op];
      if (std::none_of(row.begin(), row.end(), [&](const Dependency& each) { return each.op == needed; })) continue;
      Diagnostic diagnostic;
      diagnostic.kind = "needs-itself";
      diagnostic.message = fmt::format("{} needs {}, and `{}` runs them the other way round", text(op),
                                       text(needed.value), world_.ops.kinds()[whole].name);
      diagnostic.primary.span = find_need(evaluator_, world_, OpId(op), needed);
      diagnostic.labels.push_back({evaluator_.code().ops[whole.value].name_span, "its parts are declared here"});
      evaluator_.report(std::move(diagnostic));
      throw Stop{};
    }
  }

  Evaluator& evaluator_;
  const World& world_;
  const std::vector<KindNeed>& kinds_;
  const Rows<Dependency>& needs_;
};

}  // namespace

void refuse_cycles(Evaluator& evaluator, const World& world, const std::vector<KindNeed>& kinds,
                   const Rows<Dependency>& needs) {
  Cycles(evaluator, world, kinds, needs).refuse();
}

}  // namespace stave
