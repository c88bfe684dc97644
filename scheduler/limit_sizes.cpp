#include "scheduler/limit_sizes.h"

#include <algorithm>
#include <numeric>

namespace stave {

namespace {

LimitSizes activations(const Schedule& schedule) {
  LimitSizes result;
  const auto one = [](bool counts) {
    KindTicks sizes;
    sizes.values = {counts ? 1 : 0};
    return sizes;
  };
  for (const OpKind& kind : schedule.ops.kinds()) {
    result.taken.push_back(one(info(kind.operation).takes_activation));
    result.given.push_back(one(info(kind.operation).gives_activation));
  }
  for (const DeviceOrder& order : schedule.orders)
    result.most.push_back(order.activation_limit ? std::optional(floor(*order.activation_limit)) : std::nullopt);
  return result;
}

LimitSizes memory(const Schedule& schedule) {
  constexpr Int128 kMostParts = Int128(1) << 30;
  constexpr Int128 kMostOfOne = Int128(1) << 36;
  LimitSizes result;
  const CostSet& costs = schedule.costs;
  std::int64_t parts = 1;
  bool fits = true;
  for (const auto* kinds : {&costs.memory_taken, &costs.memory_given})
    for (const IndexedValues& kind : *kinds)
      for (Rational value : kind.values) {
        const Int128 common = Int128(parts / std::gcd(parts, value.denominator())) * value.denominator();
        fits = fits && common <= kMostParts;
        if (fits) parts = static_cast<std::int64_t>(common);
      }
  const auto all = [&](const IdVector<KindId, IndexedValues>& kinds) {
    std::vector<KindTicks> sizes;
    for (std::uint32_t k = 0; k < schedule.ops.kinds().size(); ++k) {
      KindTicks each;
      if (k < kinds.size()) {
        each.stride = kinds[KindId(k)].stride;
        for (Rational value : kinds[KindId(k)].values) {
          const Int128 whole = fits ? Int128(value.numerator()) * (parts / value.denominator()) : 0;
          fits = fits && whole <= kMostOfOne;
          each.values.push_back(fits ? static_cast<std::int64_t>(whole) : 0);
        }
      }
      if (each.values.empty()) each.values = {0};
      sizes.push_back(std::move(each));
    }
    return sizes;
  };
  result.taken = all(costs.memory_taken);
  result.given = all(costs.memory_given);
  for (const DeviceOrder& order : schedule.orders) {
    result.most.push_back(std::nullopt);
    if (!order.memory_limit || !fits) continue;
    // Sums of whole parts that pass the limit pass it rounded down.
    const std::optional<Rational> scaled = multiply(*order.memory_limit, Rational(parts));
    if (scaled && *scaled < Rational(std::int64_t(1) << 60)) result.most.back() = floor(*scaled);
  }
  return result;
}

}  // namespace

bool LimitSizes::any() const {
  return std::any_of(most.begin(), most.end(), [](const auto& each) { return each.has_value(); });
}

std::array<LimitSizes, 2> limit_sizes(const Schedule& schedule) {
  std::array<LimitSizes, 2> result = {activations(schedule), memory(schedule)};
  for (LimitSizes& each : result) each.most.resize(schedule.devices);
  return result;
}

}  // namespace stave
