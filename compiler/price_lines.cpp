#include "compiler/price_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "core/check.h"

namespace stave {

namespace {

using Index = std::array<std::uint32_t, kMaxIndices>;

IndexedValues uniform(Rational value) {
  IndexedValues result;
  result.values = {value};
  return result;
}

class Lines {
 public:
  Lines(Evaluator& evaluator, const World& world)
      : evaluator_(evaluator), world_(world), code_(evaluator.code()), letters_(evaluator, world, result_) {}

  CostSet all(const Schedule& schedule, const Prices* prices) {
    const std::size_t kinds = world_.ops.kinds().size();
    result_.duration.resize(kinds);
    result_.memory_taken.resize(kinds);
    result_.memory_given.resize(kinds);
    result_.message.assign(code_.payloads.size(), 0);
    result_.duration_span.resize(kinds);
    result_.message_span.resize(code_.payloads.size());
    evaluator_.speak(&letters_);
    const std::size_t own = std::min(code_.own_costs, code_.costs.size());
    for (std::size_t i = 0; i < own; ++i) cost(code_.costs[i]);
    result_.weights.assign(evaluator_.stages(), 0);
    std::vector<bool> has_memory(kinds, false);
    for (const ValueCode& line : code_.memory) memory(line, has_memory);
    if (prices != nullptr) {
      result_.priced_pairs.emplace();
      if (!prices->apply(schedule, world_, result_, evaluator_.sink())) throw Stop{};
    }
    for (std::size_t i = own; i < code_.costs.size(); ++i) cost(code_.costs[i]);
    evaluator_.speak(nullptr);
    freeze();
    for (std::uint32_t k = 0; k < kinds; ++k) fused(k, has_memory[k]);
    return std::move(result_);
  }

 private:
  const OpKind& kind(std::uint32_t k) const { return world_.ops.kinds()[KindId(k)]; }

  /// The values of a line for each value of the indices that it uses. Where no op has them (`exists`, by number of the op)
  /// the line has no say, and the value is that of another.
  IndexedValues values(const ValueCode& line, std::span<const std::uint32_t> extents,
                       const std::vector<bool>& exists = {}) {
    // Where one index has no value there is no op that could cost anything.
    if (std::find(extents.begin(), extents.end(), 0u) != extents.end()) return uniform(0);
    IndexedValues result;
    std::size_t count = 1;
    for (std::size_t i = extents.size(); i-- > 0;) {
      if (i >= line.slots.size() || line.slots[i] == kNoSlot || !line.used[i]) continue;
      result.stride[i] = static_cast<std::uint32_t>(count);
      count *= extents[i];
    }
    std::vector<bool> asked(count, exists.empty());
    for (std::size_t op = 0; op < exists.size(); ++op) {
      std::size_t n = 0;
      std::size_t rest = op;
      for (std::size_t i = extents.size(); i-- > 0; rest /= extents[i]) n += rest % extents[i] * result.stride[i];
      asked[n] = asked[n] || exists[op];
    }
    std::size_t skipped = 0;
    result.values.reserve(count);
    for (std::size_t n = 0; n < count; ++n) {
      if (!asked[n]) {
        if (result.values.empty()) ++skipped;
        else result.values.push_back(result.values.back());
        continue;
      }
      const Arena::Mark mark = evaluator_.arena().mark();
      std::size_t loops = 0;
      for (std::size_t i = 0; i < extents.size(); ++i) {
        if (result.stride[i] == 0) continue;
        evaluator_.set(line.slots[i], Datum::whole(static_cast<std::int64_t>(n / result.stride[i] % extents[i])));
        evaluator_.enter_loop(line.slots[i]);
        ++loops;
      }
      evaluator_.step(line.target_span);
      result.values.insert(result.values.end(), std::exchange(skipped, 0) + 1, evaluator_.number(line.value));
      for (; loops > 0; --loops) evaluator_.leave_loop();
      evaluator_.arena().release(mark);
    }
    result.values.resize(count);
    return result;
  }

  IndexedValues values_of_kind(const ValueCode& line) {
    std::vector<std::uint32_t> extents;
    const OpKind& of = kind(line.op);
    for (const OpIndex& index : of.indices) extents.push_back(index.extent);
    const bool uses_indices = std::find(line.used.begin(), line.used.end(), true) != line.used.end();
    if (!world_.partial[line.op] || !uses_indices) return values(line, extents);
    const auto first = world_.exists.begin() + of.first;
    return values(line, extents, std::vector<bool>(first, first + of.count));
  }

  /// Said of the first value that is refused, with the indices that made it.
  [[noreturn]] void refuse(const ValueCode& line, const IndexedValues& values, std::size_t n, std::string_view what,
                           std::string message) {
    std::string with;
    for (std::size_t i = 0; i < line.slots.size(); ++i) {
      if (values.stride[i] == 0) continue;
      std::size_t extent = line.target == ValueCode::Target::Weights ? evaluator_.stages()
                                                                     : kind(line.op).indices[i].extent;
      with += fmt::format("{}{} = {}", with.empty() ? " with " : ", ", code_.slots[line.slots[i]],
                          n / values.stride[i] % extent);
    }
    evaluator_.fail(what, code_.spans[line.value], fmt::format("{}{}", message, with),
                    fmt::format("this is {}", values.values[n].text()));
  }

  void cost(const ValueCode& line) {
    switch (line.target) {
      case ValueCode::Target::Op: {
        const IndexedValues each = values_of_kind(line);
        for (std::size_t n = 0; n < each.values.size(); ++n)
          if (each.values[n] < Rational(0))
            refuse(line, each, n, "negative-cost",
                   fmt::format("the cost of `{}` is {}; none may be below 0", kind(line.op).name, each.values[n].text()));
        result_.duration[KindId(line.op)] = each;
        result_.duration_span[KindId(line.op)] = code_.spans[line.value];
        return;
      }
      // Of the pairs that stand in the order: pair_costs.h.
      case ValueCode::Target::Pair: return;
      case ValueCode::Target::Setup: setup(line); return;
      case ValueCode::Target::AllMessages:
      case ValueCode::Target::Message: {
        if (std::find(line.used.begin(), line.used.end(), true) != line.used.end()) {
          links(line);
          return;
        }
        const IndexedValues one = values(line, {});
        if (one.values[0] < Rational(0))
          refuse(line, one, 0, "negative-cost",
                 fmt::format("the cost of a message is {}; none may be below 0", one.values[0].text()));
        for (std::size_t p = 0; p < code_.payloads.size(); ++p)
          if (line.target == ValueCode::Target::AllMessages || code_.payloads[p] == line.message) {
            result_.message.set(p, one.values[0]);
            result_.message_span[p] = code_.spans[line.value];
          }
        return;
      }
      case ValueCode::Target::Weights: break;
    }
    STAVE_CHECK(false, "a cost of weights");
  }

  /// The cost of a message from every device to every other; of each size, if the line asks for a cost that depends on it.
  void links(const ValueCode& line) {
    LinkCosts<Rational> all;
    all.kinds = std::size_t(evaluator_.devices()) * evaluator_.devices();
    letters_.speak_of_size(0);
    links_of_size(line, all);
    for (std::uint32_t size = 1; letters_.was_asked_for_size() && size < result_.message.sizes()->count; ++size) {
      letters_.speak_of_size(size);
      links_of_size(line, all);
    }
    letters_.speak_of_all_sizes();
    const Rational one = all.kinds > 1 ? all.values[1] : Rational(0);
    bool alike = true;
    // On one device there is no message.
    for (std::size_t i = 0; i < all.values.size() && alike; ++i)
      alike = i % all.kinds % (evaluator_.devices() + std::size_t(1)) == 0 || all.values[i] == one;
    const auto shared = std::make_shared<const LinkCosts<Rational>>(std::move(all));
    for (std::size_t p = 0; p < code_.payloads.size(); ++p) {
      if (line.target != ValueCode::Target::AllMessages && code_.payloads[p] != line.message) continue;
      if (alike)
        result_.message.set(p, one);
      else
        result_.message.set_links(p, evaluator_.devices(), shared);
      result_.message_span[p] = code_.spans[line.value];
    }
  }

  void links_of_size(const ValueCode& line, LinkCosts<Rational>& into) {
    const std::uint32_t devices = evaluator_.devices();
    pairs_ += into.kinds;
    if (pairs_ > kMaxLinks)
      evaluator_.fail("too-many", line.target_span,
                      fmt::format("the costs of messages between two of {} devices: {} in all, and at most {} can be",
                                  devices, pairs_, kMaxLinks));
    evaluator_.add_budget(into.kinds);
    evaluator_.enter_loop(line.slots[0]);
    evaluator_.enter_loop(line.slots[1]);
    for (std::uint32_t a = 0; a < devices; ++a)
      for (std::uint32_t b = 0; b < devices; ++b) {
        into.values.push_back(0);
        if (a == b) continue;
        const Arena::Mark mark = evaluator_.arena().mark();
        evaluator_.set(line.slots[0], Datum::whole(a));
        evaluator_.set(line.slots[1], Datum::whole(b));
        evaluator_.step(line.target_span);
        const Rational value = evaluator_.number(line.value);
        if (value < Rational(0))
          evaluator_.fail("negative-cost", code_.spans[line.value],
                          fmt::format("the cost of a message is {}; none may be below 0", value.text()),
                          fmt::format("this is {}", value.text()));
        evaluator_.arena().release(mark);
        into.values.back() = value;
      }
    evaluator_.leave_loop();
    evaluator_.leave_loop();
  }

  void setup(const ValueCode& line) {
    SetupCosts<Rational>::Rule rule{KindId(line.other), KindId(line.op), 0, {}};
    std::uint32_t own = kNoSlot;
    std::uint32_t before = kNoSlot;
    const auto stage_slot = [&](std::uint32_t op, const std::vector<std::uint32_t>& slots) {
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (code_.ops[op].indices[i].role == IndexRole::Stage) return slots[i];
      return kNoSlot;
    };
    own = stage_slot(line.op, line.slots);
    before = stage_slot(line.other, line.other_slots);
    const bool by_stage = own != kNoSlot || before != kNoSlot;
    if (by_stage) rule.stages = evaluator_.stages();
    const std::size_t count = by_stage ? std::size_t(rule.stages) * rule.stages : 1;
    constexpr std::size_t kMost = std::size_t(1) << 24;
    if (count > kMost)
      evaluator_.fail("too-many", line.target_span,
                      fmt::format("a setup of {} pairs of stages: there are at most {}", count, kMost));
    evaluator_.add_budget(count);
    for (std::size_t n = 0; n < count; ++n) {
      const Arena::Mark mark = evaluator_.arena().mark();
      if (own != kNoSlot) evaluator_.set(own, Datum::whole(static_cast<std::int64_t>(n / rule.stages)));
      if (before != kNoSlot) evaluator_.set(before, Datum::whole(static_cast<std::int64_t>(n % rule.stages)));
      evaluator_.step(line.target_span);
      const Rational value = evaluator_.number(line.value);
      if (value < Rational(0))
        evaluator_.fail("negative-cost", code_.spans[line.value],
                        fmt::format("the setup of `{}` after `{}` is {}; none may be below 0", kind(line.op).name,
                                    kind(line.other).name, value.text()),
                        fmt::format("this is {}", value.text()));
      rule.values.push_back(value);
      evaluator_.arena().release(mark);
    }
    std::erase_if(result_.setups.rules, [&](const auto& each) {
      return each.before == rule.before && each.after == rule.after;
    });
    result_.setups.rules.push_back(std::move(rule));
  }

  void memory(const ValueCode& line, std::vector<bool>& has) {
    if (line.target == ValueCode::Target::Weights) {
      const std::uint32_t stages = evaluator_.stages();
      const IndexedValues each = values(line, std::span(&stages, 1));
      for (std::uint32_t s = 0; s < stages; ++s) {
        const std::size_t n = std::size_t(s) * each.stride[0];
        if (each.values[n] < Rational(0))
          refuse(line, each, n, "negative-memory", fmt::format("the weights of a stage take {}", each.values[n].text()));
        result_.weights[s] = each.values[n];
      }
      return;
    }
    const KindId k(line.op);
    const IndexedValues each = values_of_kind(line);
    result_.memory_taken[k] = each;
    result_.memory_given[k] = each;
    for (Rational& value : result_.memory_taken[k].values) value = std::max(value, Rational(0));
    for (Rational& value : result_.memory_given[k].values)
      value = value < Rational(0) ? *subtract(0, value) : Rational(0);
    has[line.op] = true;
  }

  /// f(value of a, value of b), for each value of the indices that either depends on.
  template <class Combine>
  IndexedValues combine(std::uint32_t k, const IndexedValues& a, const IndexedValues& b, const Combine& f) {
    IndexedValues result;
    std::size_t count = 1;
    const std::vector<OpIndex>& indices = kind(k).indices;
    for (std::size_t i = indices.size(); i-- > 0;) {
      if (a.stride[i] == 0 && b.stride[i] == 0) continue;
      result.stride[i] = static_cast<std::uint32_t>(count);
      count *= indices[i].extent;
    }
    result.values.reserve(count);
    for (std::size_t n = 0; n < count; ++n) {
      Index at = {};
      for (std::size_t i = 0; i < indices.size(); ++i)
        if (result.stride[i] != 0)
          at[i] = static_cast<std::uint32_t>(n / result.stride[i] % indices[i].extent);
      const std::optional<Rational> value = f(a.values[a.at(at)], b.values[b.at(at)]);
      if (!value) evaluator_.fail("overflow", code_.ops[k].name_span, fmt::format("a cost of `{}` does not fit",
                                                                                  kind(k).name));
      result.values.push_back(*value);
    }
    return result;
  }

  IndexedValues sum(std::uint32_t k, const IdVector<KindId, IndexedValues>& of) {
    IndexedValues result;
    for (KindId part : kind(k).parts) {
      if (!of[part].given()) return {};
      result = result.given() ? combine(k, result, of[part], [](Rational a, Rational b) { return add(a, b); })
                              : of[part];
    }
    return result;
  }

  void fused(std::uint32_t k, bool has_memory) {
    if (kind(k).parts.empty()) return;
    const KindId id(k);
    if (!result_.duration[id].given()) result_.duration[id] = sum(k, result_.duration);
    if (has_memory) return;
    for (IdVector<KindId, IndexedValues>* each : {&result_.memory_taken, &result_.memory_given}) {
      for (KindId part : kind(k).parts)
        if (!(*each)[part].given()) (*each)[part] = uniform(0);
      (*each)[id] = sum(k, *each);
    }
  }

  void freeze() {
    if (code_.freezes.empty()) return;
    const KindId w = world_.ops.find(Operation::WeightGradient);
    const ValueCode& line = code_.freezes.back();
    for (const ValueCode& each : code_.freezes) {
      const IndexedValues ratios = values_of_kind(each);
      for (std::size_t n = 0; n < ratios.values.size(); ++n)
        if (ratios.values[n] < Rational(0) || ratios.values[n] > Rational(1))
          refuse(each, ratios, n, "freeze-ratio",
                 fmt::format("a freeze ratio is {}; it must be from 0 to 1", ratios.values[n].text()));
      if (&each != &line) continue;
      if (!w.valid() || w.value != each.op)
        evaluator_.fail("freeze-target", each.target_span, "a freeze ratio needs the weight gradient of a stage");
      IndexedValues& weight = result_.duration[w];
      if (!weight.given()) continue;
      const IndexedValues skipped =
          combine(w.value, ratios, weight, [](Rational r, Rational cost) { return multiply(r, cost); });
      const auto less = [](Rational a, Rational b) { return subtract(a, b); };
      weight = combine(w.value, weight, skipped, less);
      for (std::uint32_t k = 0; k < world_.ops.kinds().size(); ++k) {
        const std::vector<KindId>& parts = kind(k).parts;
        IndexedValues& whole = result_.duration[KindId(k)];
        if (!whole.given() || std::find(parts.begin(), parts.end(), w) == parts.end()) continue;
        whole = combine(k, whole, skipped, less);
        for (Rational value : whole.values)
          if (value < Rational(0))
            evaluator_.fail("negative-cost", each.target_span,
                            fmt::format("with what is skipped of `{}`, the cost of `{}` is {}; none may be below 0",
                                        kind(w.value).name, kind(k).name, value.text()));
      }
      spread(ratios);
    }
  }

  /// The ratios by stage and microbatch.
  void spread(const IndexedValues& ratios) {
    const OpKind& w = world_.ops.kinds()[world_.ops.find(Operation::WeightGradient)];
    std::size_t stage_stride = 0;
    std::size_t microbatch_stride = 0;
    for (std::size_t i = 0; i < w.indices.size(); ++i) {
      if (w.indices[i].role == IndexRole::Stage) stage_stride = ratios.stride[i];
      if (w.indices[i].role == IndexRole::Microbatch) microbatch_stride = ratios.stride[i];
    }
    const std::uint32_t microbatches = evaluator_.count(SettingKind::Microbatches);
    result_.freeze.reserve(std::size_t(evaluator_.stages()) * microbatches);
    for (std::uint32_t s = 0; s < evaluator_.stages(); ++s)
      for (std::uint32_t m = 0; m < microbatches; ++m)
        result_.freeze.push_back(ratios.values[s * stage_stride + m * microbatch_stride]);
  }

  Evaluator& evaluator_;
  const World& world_;
  const Code& code_;
  CostSet result_;
  Letters letters_;
  /// Pairs of devices over all lines.
  std::uint64_t pairs_ = 0;
};

}  // namespace

CostSet price_lines(Evaluator& evaluator, const World& world, const Schedule& schedule, const Prices* prices) {
  return Lines(evaluator, world).all(schedule, prices);
}

const ValueCode* pair_line(const Code& code, const CostSet& costs, std::uint32_t op, std::uint32_t other) {
  const std::size_t first = costs.priced_pairs ? std::min(code.own_costs, code.costs.size()) : 0;
  for (std::size_t i = code.costs.size(); i-- > first;) {
    const ValueCode& line = code.costs[i];
    if (line.target == ValueCode::Target::Pair &&
        ((line.op == op && line.other == other) || (line.op == other && line.other == op)))
      return &line;
  }
  return nullptr;
}

std::optional<Rational> pair_price(const CostSet& costs, std::uint32_t op, std::uint32_t other) {
  if (!costs.priced_pairs) return std::nullopt;
  for (const KindPairCost& each : *costs.priced_pairs)
    if ((each.first.value == op && each.second.value == other) || (each.first.value == other && each.second.value == op))
      return each.duration;
  return std::nullopt;
}

void Letters::not_one_number(const std::string& name, Span span) {
  evaluator_.fail("not-one-number", span, fmt::format("the cost of `{}` is not one number here", name),
                  name == "message" ? "say between which devices, and which message: `activation(0, 1)`" : "name its indices");
}

void Letters::no_cost(const std::string& name, Span span) {
  evaluator_.fail("no-cost", span, fmt::format("`{}` has no cost yet", name));
}

Rational Letters::letter(std::uint32_t op, Span span) {
  const IndexedValues& values = costs_.duration[KindId(op)];
  const std::string& name = evaluator_.code().ops[op].name;
  if (!values.given()) return sum_of_parts(op, {}, span, true);
  const bool equal = std::all_of(values.values.begin(), values.values.end(),
                                 [&](Rational each) { return each == values.values.front(); });
  if (!equal) not_one_number(name, span);
  return values.values.front();
}

Rational Letters::cost(std::uint32_t op, const std::array<std::uint32_t, kMaxIndices>& index, Span span) {
  const IndexedValues& values = costs_.duration[KindId(op)];
  const std::vector<OpIndex>& indices = world_.ops.kinds()[KindId(op)].indices;
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (index[i] >= indices[i].extent)
      evaluator_.fail("index-outside", span, fmt::format("`{}` has no {} {}: they run from 0 to {}",
                                                         evaluator_.code().ops[op].name, indices[i].name, index[i],
                                                         std::int64_t(indices[i].extent) - 1));
  refuse_slice(evaluator_, world_.ops.kinds()[KindId(op)], index, span);
  if (!values.given()) return sum_of_parts(op, index, span, false);
  return values.values[values.at(index)];
}

Rational Letters::sum_of_parts(std::uint32_t op, const std::array<std::uint32_t, kMaxIndices>& index, Span span,
                               bool one) {
  const std::vector<KindId>& parts = world_.ops.kinds()[KindId(op)].parts;
  if (parts.empty()) no_cost(evaluator_.code().ops[op].name, span);
  Rational result;
  for (KindId part : parts) {
    const std::optional<Rational> next =
        add(result, one ? letter(part.value, span) : cost(part.value, index, span));
    if (!next) evaluator_.fail("overflow", span, "the sum of the costs does not fit");
    result = *next;
  }
  return result;
}

Rational Letters::pair(std::uint32_t op, std::uint32_t other, Span span) {
  const Code& code = evaluator_.code();
  const ValueCode* const line = pair_line(code, costs_, op, other);
  if (line == nullptr) {
    if (const std::optional<Rational> priced = pair_price(costs_, op, other)) return *priced;
    const std::optional<Rational> sum = add(letter(op, span), letter(other, span));
    if (!sum) evaluator_.fail("overflow", span, "the sum of the costs does not fit");
    return *sum;
  }
  if (!line->slots.empty() || !line->other_slots.empty())
    not_one_number(fmt::format("{} with {}", code.ops[op].name, code.ops[other].name), span);
  Letters letters(evaluator_, world_, costs_);
  return evaluator_.speaking(letters, [&] { return evaluator_.number(line->value); });
}

Rational Letters::message(std::uint32_t payload, Span span) {
  const std::size_t first = payload == kNoSlot ? 0 : payload;
  const std::size_t last = payload == kNoSlot ? costs_.message.size() : first + 1;
  for (std::size_t p = first; p < last; ++p)
    if (costs_.message.by_link(p) || costs_.message[p] != costs_.message[first])
      not_one_number(payload == kNoSlot ? "message" : evaluator_.code().payloads[payload], span);
  return costs_.message[first];
}

Rational Letters::message(std::uint32_t payload, std::uint32_t source, std::uint32_t target, Span span) {
  if (source == target)
    evaluator_.fail("index-outside", span, fmt::format("there is no message from device {} to itself", source));
  const std::size_t first = payload == kNoSlot ? 0 : payload;
  const std::size_t last = payload == kNoSlot ? costs_.message.size() : first + 1;
  const std::string& name = payload == kNoSlot ? std::string("message") : evaluator_.code().payloads[payload];
  const auto of = [&](std::size_t p) {
    if (costs_.message.by_size(p) && !size_) not_one_number(name, span);
    asked_for_size_ = asked_for_size_ || costs_.message.by_size(p);
    return costs_.message.of(p, source, target, size_.value_or(0));
  };
  const Rational result = of(first);
  for (std::size_t p = first; p < last; ++p)
    if (of(p) != result) not_one_number(name, span);
  return result;
}

Rational Letters::metric(TermId) {
  STAVE_CHECK(false, "a metric outside of an `expect`");
  return {};
}

}  // namespace stave
