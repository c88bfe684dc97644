#include "scheduler/compare/work.h"

#include <utility>

namespace stave {

std::optional<Work> work_of(const Schedule& schedule) {
  const KindId forward = schedule.ops.find(Operation::Forward);
  if (!forward.valid() || schedule.microbatches == 0) return std::nullopt;
  const OpKind& kind = schedule.ops.kinds()[forward];
  const IndexedValues& costs = schedule.costs.duration[forward];
  std::int64_t forwards = 0;
  std::optional<Rational> time = Rational(0);
  for (std::uint32_t i = 0; i < kind.count; ++i) {
    const OpId op(kind.first + i);
    if (!schedule.op_exists(op)) continue;
    ++forwards;
    if (costs.given() && !costs.uniform() && time) time = add(*time, costs[schedule.ops.name(op)]);
  }
  if (forwards == 0 || !costs.given()) return std::nullopt;
  if (costs.uniform()) time = multiply(costs.values[0], Rational(forwards));
  if (time) time = divide(*time, Rational(schedule.microbatches));
  if (!time) return std::nullopt;
  return Work{*Rational::make(forwards, schedule.microbatches), *time};
}

bool scale(CostSet& costs, Rational factor) {
  IdVector<KindId, IndexedValues> durations = costs.duration;
  std::vector<PairCost> pairs = costs.pairs;
  bool fits = true;
  const auto change = [&](Rational& value) {
    const std::optional<Rational> product = multiply(value, factor);
    fits = fits && product.has_value();
    if (product) value = *product;
  };
  for (IndexedValues& kind : durations)
    for (Rational& value : kind.values) change(value);
  for (PairCost& pair : pairs) change(pair.duration);
  if (!fits) return false;
  costs.duration = std::move(durations);
  costs.pairs = std::move(pairs);
  return true;
}

}  // namespace stave
