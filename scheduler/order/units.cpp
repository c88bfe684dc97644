#include "scheduler/order/units.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace stave {

namespace {

/// The ops that a unit runs, without a vector.
template <class Visit>
void for_each_part(const OpSet& ops, OpId unit, Visit&& visit) {
  const OpKind& kind = ops.kind(unit);
  if (kind.parts.empty()) return visit(unit.value);
  for (KindId part : kind.parts) visit(ops.kinds()[part].first + (unit.value - kind.first));
}

std::int64_t in_units(Rational value, std::int64_t per_unit) {
  const Int128 result = Int128(value.numerator()) * per_unit / value.denominator();
  // Sizes far beyond any limit need not be exact.
  return static_cast<std::int64_t>(std::min(result, Int128(1) << 40));
}

}  // namespace

std::optional<Units> Units::make(const Schedule& schedule, const Costs& costs) {
  Units units;
  units.schedule_ = &schedule;
  units.costs_ = &costs;
  if (!units.place_units()) return std::nullopt;
  units.join();
  units.measure();
  return units;
}

bool Units::place_units() {
  const OpSet& ops = schedule_->ops;
  infos_.resize(ops.size());
  unit_of_.assign(ops.size(), OpId::kNone);
  bool unique = true;
  for (const DeviceOrder& order : schedule_->orders) {
    for (std::size_t b = 0; b < order.blocks.size(); ++b) {
      const OrderBlock& block = order.blocks[b];
      const bool fill = block.kind == OrderKind::Fill;
      has_fills_ = has_fills_ || fill;
      for (std::size_t i = 0; i < block.ops.size(); ++i) {
        const OpId unit = block.ops[i];
        infos_[unit.value] = {static_cast<std::uint32_t>(i),
                              ops.microbatch(unit),
                              schedule_->device_of[unit.value],
                              static_cast<std::uint16_t>(b),
                              static_cast<std::uint16_t>(ops.kind_of(unit).value),
                              fill};
        ++count_;
        for_each_part(ops, unit, [&](std::uint32_t op) {
          unique = unique && unit_of_[op] == OpId::kNone;
          unit_of_[op] = unit.value;
        });
      }
    }
  }
  if (!unique) return false;
  for (const OpKind& kind : ops.kinds()) {
    if (kind.optional || !kind.parts.empty()) continue;
    for (std::uint32_t op = kind.first; op < kind.first + kind.count; ++op)
      if (unit_of_[op] == OpId::kNone && schedule_->op_exists(OpId(op))) return false;
  }
  return true;
}

void Units::join() {
  const Rows<Dependency>& needs = schedule_->needs;
  needs_.assign(schedule_->ops.size(), 0);
  std::vector<std::uint32_t> first(schedule_->ops.size() + 1, 0);
  const auto counts = [&](std::uint32_t op, const Dependency& need) {
    const std::uint32_t maker = unit_of_[need.op.value];
    return maker != OpId::kNone && maker != unit_of_[op];
  };
  for (std::uint32_t op = 0; op < needs.size(); ++op) {
    if (unit_of_[op] == OpId::kNone) continue;
    for (const Dependency& need : needs[op]) {
      if (!counts(op, need)) continue;
      ++needs_[unit_of_[op]];
      ++first[need.op.value + 1];
    }
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  successors_.items.resize(first.back());
  std::vector<std::uint32_t> next = first;
  for (std::uint32_t op = 0; op < needs.size(); ++op) {
    if (unit_of_[op] == OpId::kNone) continue;
    for (const Dependency& need : needs[op])
      if (counts(op, need)) successors_.items[next[need.op.value]++] = {OpId(unit_of_[op]), need.payload};
  }
  successors_.first = std::move(first);
}

void Units::measure() {
  const OpSet& ops = schedule_->ops;
  std::int64_t per_unit = 1;
  const auto refine = [&](Rational value) {
    const Int128 common = Int128(per_unit / std::gcd(per_unit, value.denominator())) * value.denominator();
    // Beyond this the sizes are finer than any limit can tell apart.
    if (common < (Int128(1) << 30)) per_unit = static_cast<std::int64_t>(common);
  };
  for (const auto* kinds : {&schedule_->costs.memory_taken, &schedule_->costs.memory_given})
    for (const IndexedValues& kind : *kinds)
      for (Rational value : kind.values) refine(value);
  for (const DeviceOrder& order : schedule_->orders)
    if (order.memory_limit) refine(*order.memory_limit);
  memory_unit_ = *divide(Rational(1), Rational(per_unit));

  const auto activations = [](bool counts) {
    KindTicks one;
    one.values = {counts ? 1 : 0};
    return one;
  };
  const auto memory = [&](const IndexedValues& sizes) {
    KindTicks result;
    result.stride = sizes.stride;
    for (Rational value : sizes.values) result.values.push_back(in_units(value, per_unit));
    if (result.values.empty()) result.values = {0};
    return result;
  };
  for (std::uint32_t k = 0; k < ops.kinds().size(); ++k) {
    const OperationInfo& known = stave::info(ops.kinds()[KindId(k)].operation);
    sizes_[0].taken.push_back(activations(known.takes_activation));
    sizes_[0].given.push_back(activations(known.gives_activation));
    sizes_[1].taken.push_back(memory(schedule_->costs.memory_taken[KindId(k)]));
    sizes_[1].given.push_back(memory(schedule_->costs.memory_given[KindId(k)]));
  }
}

std::optional<Limit> Units::limit(std::size_t which, DeviceId device) const {
  const DeviceOrder& order = schedule_->orders[device];
  const std::optional<Rational>& most = which == 0 ? order.activation_limit : order.memory_limit;
  if (!most) return std::nullopt;
  // Activations are whole; a limit between two whole numbers is the lower one.
  const std::int64_t bound = which == 0 ? floor(*most) : in_units(*most, memory_unit_.denominator());
  bool leave_room = false;
  std::vector<std::int64_t> rest(schedule_->microbatches, 0);
  for (const OrderBlock& block : order.blocks) {
    for (OpId unit : block.ops) {
      const std::int64_t size = taken(which, unit);
      if (size == 0) continue;
      leave_room = leave_room || block.kind != OrderKind::List;
      if (microbatch(unit) != Limit::kNobody) rest[microbatch(unit)] += size;
    }
  }
  return Limit(bound, std::move(rest), leave_room);
}

}  // namespace stave
