#include "scheduler/order/units.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/check.h"

namespace stave {

namespace {

const OrderBlock kNothing;

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
  for (const auto& rule : costs.setups.rules)
    for (Ticks each : rule.values) units.longest_setup_ = std::max(units.longest_setup_, each);
  units.find_lanes();
  if (!units.place_units()) return std::nullopt;
  units.join_replicas();
  units.join();
  units.measure();
  return units;
}

/// Where no op runs beside the computing, the lanes are the orders as they are.
void Units::find_lanes() {
  const IdVector<DeviceId, DeviceOrder>& orders = schedule_->orders;
  const OpSet& ops = schedule_->ops;
  lanes_.resize(orders.size());
  lanes_of_.resize(orders.size());
  for (std::uint32_t d = 0; d < orders.size(); ++d) {
    lanes_[d].device = DeviceId(d);
    lanes_of_[DeviceId(d)] = {d};
  }
  const bool streams = std::any_of(ops.kinds().begin(), ops.kinds().end(),
                                   [](const OpKind& kind) { return !kind.stream.empty() && kind.count > 0; });
  for (std::uint32_t d = 0; d < orders.size(); ++d) {
    std::vector<std::string_view> names = {""};
    for (const OrderBlock& block : orders[DeviceId(d)].blocks) {
      if (!streams) {
        lanes_[d].blocks.push_back(&block);
        continue;
      }
      // A lane has every block of its device, so that they have the same numbers.
      std::vector<OrderBlock*> parts;
      const auto part = [&](std::size_t i) -> OrderBlock& {
        while (parts.size() <= i) parts.push_back(nullptr);
        if (parts[i] == nullptr) {
          parts[i] = &split_.emplace_back();
          parts[i]->kind = block.kind;
        }
        return *parts[i];
      };
      std::size_t next_pair = 0;
      for (std::size_t k = 0; k < block.ops.size(); ++k) {
        const std::string_view stream = ops.kind(block.ops[k]).stream;
        const auto found = std::find(names.begin(), names.end(), stream);
        const std::size_t i = static_cast<std::size_t>(found - names.begin());
        if (found == names.end()) names.push_back(stream);
        OrderBlock& to = part(i);
        if (next_pair < block.pairs.size() && block.pairs[next_pair] == k) {
          to.pairs.push_back(static_cast<std::uint32_t>(to.ops.size()));
          ++next_pair;
        }
        to.ops.push_back(block.ops[k]);
      }
      while (lanes_of_[DeviceId(d)].size() < names.size()) {
        lanes_of_[DeviceId(d)].push_back(static_cast<std::uint32_t>(lanes_.size()));
        lanes_.push_back({DeviceId(d), {}});
      }
      const std::size_t number = static_cast<std::size_t>(&block - orders[DeviceId(d)].blocks.data());
      for (std::size_t i = 0; i < names.size(); ++i) {
        Lane& lane = lanes_[lanes_of_[DeviceId(d)][i]];
        while (lane.blocks.size() < number) lane.blocks.push_back(&kNothing);
        lane.blocks.push_back(i < parts.size() && parts[i] != nullptr ? parts[i] : &kNothing);
      }
    }
  }
}

bool Units::place_units() {
  const OpSet& ops = schedule_->ops;
  infos_.resize(ops.size());
  unit_of_.assign(ops.size(), OpId::kNone);
  bool unique = true;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    for (std::size_t b = 0; b < lanes_[lane].blocks.size(); ++b) {
      const OrderBlock& block = *lanes_[lane].blocks[b];
      const bool fill = block.kind == OrderKind::Fill;
      has_fills_ = has_fills_ || (fill && !block.ops.empty());
      std::size_t next_pair = 0;
      for (std::size_t i = 0; i < block.ops.size(); ++i) {
        const OpId unit = block.ops[i];
        infos_[unit.value] = {static_cast<std::uint32_t>(i),
                              ops.microbatch(unit),
                              static_cast<std::uint32_t>(lane),
                              static_cast<std::uint16_t>(b),
                              kind_of(unit),
                              fill};
        count_ += must_run(unit);
        if (next_pair < block.pairs.size() && block.pairs[next_pair] == i) {
          ++next_pair;
          if (partners_.empty()) partners_.assign(ops.size(), OpId());
          const OpId other = block.ops[++i];
          partners_[unit.value] = other;
          infos_[other.value].kind = kind_of(other);
        }
        for_each_op(unit, [&](std::uint32_t op) {
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

/// The replicas of a reduction, where lists and `any` have all of them.
void Units::join_replicas() {
  const OpSet& ops = schedule_->ops;
  for (const OpKind& kind : ops.kinds()) {
    const std::uint32_t replicas = kind.extent(IndexRole::Replica);
    if (kind.stream != kReduceStream || replicas < 2) continue;
    if (together_of_.empty()) together_of_.assign(ops.size(), OpId::kNone);
    for (std::uint32_t first = kind.first; first < kind.first + kind.count; first += replicas) {
      std::vector<OpId> members;
      for (std::uint32_t op = first; op < first + replicas; ++op)
        if (unit_of_[op] != OpId::kNone && !infos_[op].fill) members.push_back(OpId(op));
      if (members.size() < 2) continue;
      for (OpId op : members) {
        together_of_[op.value] = static_cast<std::uint32_t>(together_.size());
        together_.items.push_back(op);
      }
      together_.end_row();
    }
  }
}

void Units::join() {
  const Rows<Dependency>& needs = schedule_->needs;
  needs_.assign(schedule_->ops.size(), 0);
  std::vector<std::uint32_t> first(schedule_->ops.size() + 1, 0);
  const std::vector<Behind> behind = written_behind();
  // Calls `visit(op that is waited for, who waits, payload)`.
  const auto each = [&](const auto& visit) {
    for (std::uint32_t op = 0; op < needs.size(); ++op) {
      if (unit_of_[op] == OpId::kNone) continue;
      for (const Dependency& need : needs[op]) {
        const std::uint32_t maker = unit_of_[need.op.value];
        if (maker != OpId::kNone && maker != unit_of_[op]) visit(need.op.value, OpId(unit_of_[op]), need.payload);
      }
    }
    for (const Behind& one : behind) visit(one.op, one.unit, std::uint16_t(0));
  };
  each([&](std::uint32_t op, OpId unit, std::uint16_t) {
    ++needs_[unit.value];
    ++first[op + 1];
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  successors_.items.resize(first.back());
  std::vector<std::uint32_t> next = first;
  each([&](std::uint32_t op, OpId unit, std::uint16_t payload) { successors_.items[next[op]++] = {unit, payload}; });
  successors_.first = std::move(first);
}

/// In a list an op of another stream waits for the computing op written before it.
std::vector<Units::Behind> Units::written_behind() const {
  std::vector<Behind> result;
  if (split_.empty()) return result;
  for (const DeviceOrder& order : schedule_->orders)
    for (const OrderBlock& block : order.blocks) {
      if (block.kind != OrderKind::List) continue;
      std::uint32_t computes = OpId::kNone;
      for (OpId op : block.ops) {
        const OpKind& kind = schedule_->ops.kind(op);
        if (!kind.stream.empty()) {
          if (computes != OpId::kNone) result.push_back({computes, op});
          continue;
        }
        computes = kind.parts.empty() ? op.value : schedule_->ops.parts(op).back().value;
      }
    }
  return result;
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
      const std::int64_t size = this->size(sizes_[which].taken, unit);
      if (size == 0) continue;
      leave_room = leave_room || block.kind != OrderKind::List;
      const std::uint32_t m = schedule_->ops.microbatch(unit);
      if (m != Limit::kNobody) rest[m] += size;
    }
  }
  return Limit(bound, std::move(rest), leave_room);
}

}  // namespace stave
