#include "scheduler/costs.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/check.h"

namespace stave {

namespace {

/// The longest tick in which every value added so far is whole.
class Tick {
 public:
  /// False if it would be shorter than 2^-61 of a unit.
  bool add(Rational value) {
    const Int128 common = Int128(per_unit_ / std::gcd(per_unit_, value.denominator())) * value.denominator();
    if (common > kMaxTicks) return false;
    per_unit_ = static_cast<Ticks>(common);
    return true;
  }
  Ticks per_unit() const { return per_unit_; }

 private:
  Ticks per_unit_ = 1;
};

/// Calls `visit(value, how many of them there are at most, where the file says it)` for every cost; stops when it is
/// false, and then returns where.
template <class Visit>
std::optional<Span> first_refused(const Schedule& schedule, Visit&& visit) {
  const CostSet& costs = schedule.costs;
  const auto at = [](const auto& spans, auto i) { return i.value < spans.size() ? spans[i] : Span(); };
  for (std::uint32_t k = 0; k < costs.duration.size(); ++k) {
    const IndexedValues& kind = costs.duration[KindId(k)];
    for (Rational value : kind.values)
      if (!visit(value, schedule.ops.kinds()[KindId(k)].count / kind.values.size() + 1))
        return at(costs.duration_span, KindId(k));
  }
  for (const auto& rule : costs.setups.rules)
    for (Rational value : rule.values)
      if (!visit(value, schedule.ops.kinds()[rule.after].count / rule.values.size() + 1)) return Span();
  for (const PairCost& pair : costs.pairs)
    if (!visit(pair.duration, 1)) return pair.span;
  const LinkCosts<Rational>* last = nullptr;
  for (std::size_t p = 0; p < costs.message.size(); ++p) {
    const Span span = p < costs.message_span.size() ? costs.message_span[p] : Span();
    Rational most = costs.message.by_link(p) ? Rational(0) : costs.message[p];
    if (costs.message.by_link(p)) {
      const LinkCosts<Rational>& links = *costs.message.links(p);
      for (Rational each : links.values) {
        if (&links != last && !visit(each, 0)) return span;
        most = std::max(most, each);
      }
      last = &links;
    }
    if (!visit(most, schedule.needs.items.size())) return span;
  }
  return std::nullopt;
}

std::nullopt_t refuse(Diagnostics& sink, Span span, std::string why) {
  Diagnostic diagnostic;
  diagnostic.kind = "cost-overflow";
  diagnostic.message = "the costs are too large or too finely divided to be counted in whole ticks";
  diagnostic.primary = {span, "with this one"};
  diagnostic.notes = {std::move(why), "times are exact: 64-bit whole numbers of the longest tick that divides every cost"};
  sink.add(std::move(diagnostic));
  return std::nullopt;
}

}  // namespace

std::int64_t ns_of_unit(std::string_view unit) {
  std::int64_t ns = 1000000000;
  for (const std::string_view each : kTimeUnits) {
    if (each == unit) return ns;
    ns /= 1000;
  }
  return 0;
}

Ticks Costs::of_pair(OpId first) const {
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), std::pair(first, Ticks(0)));
  STAVE_CHECK(found != pairs.end() && found->first == first, "an overlapped pair without a cost");
  return found->second;
}

Ticks Costs::of_several(const Table& table, std::span<const std::uint32_t> block) const {
  if (table.device_of(block[0]) == table.device_of(block[1])) return of_pair(table.entries[block[0]]);
  Ticks longest = 0;
  for (std::uint32_t position : block) longest = std::max(longest, of(table.ops, table.entries[position]));
  return longest;
}

std::optional<Costs> make_costs(const Schedule& schedule, Diagnostics& sink) {
  Tick tick;
  if (const auto span = first_refused(schedule, [&](Rational value, std::size_t) { return tick.add(value); }))
    return refuse(sink, *span, "no common tick: the denominators have no common multiple below 2^61");

  Costs costs;
  costs.ticks_per_unit = tick.per_unit();
  costs.unit = schedule.costs.unit;
  const auto in_ticks = [&](Rational value) {
    return Int128(value.numerator()) * (costs.ticks_per_unit / value.denominator());
  };
  // No order takes longer than everything one after the other.
  Int128 everything = 0;
  if (const auto span = first_refused(schedule, [&](Rational value, std::size_t count) {
        const Int128 one = in_ticks(value);
        everything += one <= kMaxTicks ? one * static_cast<Int128>(count) : Int128(kMaxTicks) + 1;
        return everything <= kMaxTicks;
      }))
    return refuse(sink, *span, "with " + std::to_string(costs.ticks_per_unit) +
                                   " ticks to the unit, all ops and messages together pass 2^61 ticks");
  for (const IndexedValues& kind : schedule.costs.duration) {
    KindTicks ticks;
    ticks.stride = kind.stride;
    for (Rational value : kind.values) ticks.values.push_back(static_cast<Ticks>(in_ticks(value)));
    costs.kinds.push_back(std::move(ticks));
  }
  for (const PairCost& pair : schedule.costs.pairs)
    costs.pairs.push_back({pair.first, static_cast<Ticks>(in_ticks(pair.duration))});
  costs.setups = schedule.costs.setups.map<Ticks>([&](Rational value) { return static_cast<Ticks>(in_ticks(value)); });
  costs.message =
      schedule.costs.message.map<Ticks>([&](Rational value) { return static_cast<Ticks>(in_ticks(value)); });
  return costs;
}

}  // namespace stave
