#include "scheduler/costs.h"

#include <algorithm>
#include <numeric>

namespace stave {

namespace {

using Wide = __int128;

/// Least common multiple of all denominators, or none if it passes kMaxTicks.
class Tick {
 public:
  void add(Rational value) {
    if (!per_unit_) return;
    const Wide common = Wide(*per_unit_ / std::gcd(*per_unit_, value.denominator())) * value.denominator();
    per_unit_ = common > kMaxTicks ? std::nullopt : std::optional<Ticks>(static_cast<Ticks>(common));
  }
  std::optional<Ticks> per_unit() const { return per_unit_; }

 private:
  std::optional<Ticks> per_unit_ = 1;
};

std::nullopt_t refuse(Diagnostics& sink, std::string why) {
  Diagnostic diagnostic;
  diagnostic.kind = "cost-overflow";
  diagnostic.message = "the costs are too large or too finely divided to be counted in whole ticks";
  diagnostic.notes = {std::move(why), "times are exact: 64-bit whole numbers of the longest tick that divides every cost"};
  sink.add(std::move(diagnostic));
  return std::nullopt;
}

}  // namespace

std::optional<Costs> make_costs(const Schedule& schedule, Diagnostics& sink) {
  Tick tick;
  for (const IndexedValues& kind : schedule.costs.duration)
    for (Rational value : kind.values) tick.add(value);
  for (Rational value : schedule.costs.message) tick.add(value);
  if (!tick.per_unit()) return refuse(sink, "no common tick: the denominators have no common multiple below 2^61");

  Costs costs;
  costs.ticks_per_unit = *tick.per_unit();
  bool fits = true;
  const auto in_ticks = [&](Rational value) -> Ticks {
    const Wide ticks = Wide(value.numerator()) * (costs.ticks_per_unit / value.denominator());
    fits = fits && ticks <= kMaxTicks;
    return fits ? static_cast<Ticks>(ticks) : 0;
  };
  // No order takes longer than everything one after the other.
  Wide everything = 0;
  Ticks longest_message = 0;
  for (Rational value : schedule.costs.message) {
    costs.message.push_back(in_ticks(value));
    longest_message = std::max(longest_message, costs.message.back());
  }
  for (std::uint32_t k = 0; k < schedule.costs.duration.size(); ++k) {
    const IndexedValues& kind = schedule.costs.duration[KindId(k)];
    KindTicks ticks;
    ticks.stride = kind.stride;
    Ticks longest = 0;
    for (Rational value : kind.values) {
      ticks.values.push_back(in_ticks(value));
      longest = std::max(longest, ticks.values.back());
    }
    everything += Wide(longest) * schedule.ops.kinds()[KindId(k)].count;
    costs.kinds.push_back(std::move(ticks));
  }
  everything += Wide(longest_message) * static_cast<Wide>(schedule.needs.items.size());
  if (!fits || everything > kMaxTicks)
    return refuse(sink, "with " + std::to_string(costs.ticks_per_unit) +
                            " ticks to the unit, all ops and messages together pass 2^61 ticks");
  return costs;
}

}  // namespace stave
