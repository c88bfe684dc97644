#include "compiler/pair_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/price_lines.h"

namespace stave {

namespace {

class Pairs {
 public:
  Pairs(Evaluator& evaluator, const World& world, const CostSet& costs)
      : evaluator_(evaluator), world_(world), costs_(costs), letters_(evaluator, world, costs) {}

  PairCost cost(OpId first, OpId second) {
    const OpName a = world_.ops.name(first);
    const OpName b = world_.ops.name(second);
    for (const OpName& each : {a, b})
      if (world_.ops.kinds()[each.kind].optional)
        evaluator_.fail("misplaced", evaluator_.code().ops[each.kind.value].name_span,
                        fmt::format("`{}` is optional, and `{}` overlaps with it: a pair is one stretch of work, all of "
                                    "which counts",
                                    world_.ops.text(each.kind == a.kind ? first : second),
                                    world_.ops.text(each.kind == a.kind ? second : first)));
    const ValueCode* line = find(a.kind.value, b.kind.value);
    PairCost result;
    result.first = first;
    result.second = second;
    if (line == nullptr) {
      const std::optional<Rational> priced = pair_price(costs_, a.kind.value, b.kind.value);
      const std::optional<Rational> sum =
          priced ? priced : add(costs_.duration[a.kind][a], costs_.duration[b.kind][b]);
      if (!sum)
        evaluator_.fail("overflow", evaluator_.code().ops[a.kind.value].name_span, "the sum of two costs does not fit");
      result.duration = *sum;
      return result;
    }
    result.span = evaluator_.code().spans[line->value];
    const bool in_order = line->op == a.kind.value;
    set(line->slots, in_order ? a : b);
    set(line->other_slots, in_order ? b : a);
    const bool depends = !line->slots.empty() || !line->other_slots.empty();
    const auto known = depends ? values_.end() : values_.find(line);
    result.duration = known != values_.end()
                          ? known->second
                          : evaluator_.speaking(letters_, [&] { return evaluator_.number(line->value); });
    values_[line] = result.duration;
    if (result.duration < Rational(0))
      evaluator_.fail("negative-cost", result.span,
                      fmt::format("the cost of `{}` with `{}` is {}; none may be below 0", world_.ops.text(first),
                                  world_.ops.text(second), result.duration.text()));
    return result;
  }

 private:
  /// The last line for two kinds, in either order; null if there is none.
  const ValueCode* find(std::uint32_t a, std::uint32_t b) {
    const auto [known, is_new] = lines_.insert({{a, b}, nullptr});
    if (is_new) known->second = pair_line(evaluator_.code(), costs_, a, b);
    return known->second;
  }

  void set(const std::vector<std::uint32_t>& slots, const OpName& op) {
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i] != kNoSlot) evaluator_.set(slots[i], Datum::whole(op.index[i]));
  }

  Evaluator& evaluator_;
  const World& world_;
  const CostSet& costs_;
  Letters letters_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const ValueCode*> lines_;
  std::map<const ValueCode*, Rational> values_;
};

}  // namespace

std::vector<PairCost> pair_costs(Evaluator& evaluator, const World& world, const CostSet& costs,
                                 const IdVector<DeviceId, DeviceOrder>& orders) {
  std::vector<PairCost> result;
  Pairs pairs(evaluator, world, costs);
  for (const DeviceOrder& order : orders)
    for (const OrderBlock& block : order.blocks)
      for (std::uint32_t i : block.pairs) {
        evaluator.step(evaluator.code().name_span);
        result.push_back(pairs.cost(block.ops[i], block.ops[i + 1]));
      }
  std::sort(result.begin(), result.end(), [](const PairCost& a, const PairCost& b) { return a.first < b.first; });
  return result;
}

}  // namespace stave
