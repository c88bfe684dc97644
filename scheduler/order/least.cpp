#include "scheduler/order/least.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

namespace stave {

namespace {

using Reached = std::unordered_set<std::uint32_t>;

/// Units of `microbatch` that must run before `from`, or after it, itself left out.
Reached reach(const Units& units, OpId from, bool before) {
  const Schedule& schedule = units.schedule();
  const std::uint32_t microbatch = units.microbatch(from);
  Reached reached = {from.value};
  std::vector<OpId> open = {from};
  const auto visit = [&](OpId unit) {
    if (unit.valid() && units.microbatch(unit) == microbatch && reached.insert(unit.value).second) open.push_back(unit);
  };
  while (!open.empty()) {
    const OpId unit = open.back();
    open.pop_back();
    if (!before) {
      units.for_each_successor(unit, [&](const Successor& successor, OpId) { visit(successor.unit); });
      continue;
    }
    for (OpId part : schedule.ops.parts(unit))
      for (const Dependency& need : schedule.needs[part.value]) visit(units.unit_of(need.op));
  }
  reached.erase(from.value);
  return reached;
}

/// What belongs together, so that one op gives back what another took: the stage and the slice.
std::pair<std::uint32_t, std::uint32_t> group(const OpSet& ops, OpId unit) {
  return {ops.stage(unit), ops.index(unit, IndexRole::Slice)};
}

}  // namespace

LeastHeld least_held(const Units& units, std::size_t limit, DeviceId device) {
  const Schedule& schedule = units.schedule();
  std::vector<std::vector<OpId>> by_microbatch(schedule.microbatches);
  std::vector<std::int64_t> taken(schedule.microbatches, 0);
  for (const OrderBlock& block : schedule.orders[device].blocks) {
    for (OpId unit : block.ops) {
      const std::uint32_t m = units.microbatch(unit);
      if (m == Limit::kNobody) continue;
      by_microbatch[m].push_back(unit);
      taken[m] += units.taken(limit, unit);
    }
  }
  LeastHeld least;
  if (taken.empty()) return least;
  const auto most = std::max_element(taken.begin(), taken.end()) - taken.begin();
  const std::vector<OpId>& own = by_microbatch[static_cast<std::size_t>(most)];
  for (OpId at : own) {
    if (units.taken(limit, at) == 0) continue;
    const Reached before = reach(units, at, true);
    const Reached after = reach(units, at, false);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> held;
    for (OpId unit : own) {
      std::int64_t& sum = held[group(schedule.ops, unit)];
      if (unit == at || before.contains(unit.value)) sum += units.taken(limit, unit);
      if (unit != at && !after.contains(unit.value)) sum -= units.given(limit, unit);
    }
    std::int64_t size = 0;
    for (const auto& [unused, sum] : held) size += std::max<std::int64_t>(sum, 0);
    if (size <= least.size) continue;
    least = {size, at, {}};
    for (OpId unit : own)
      if (units.taken(limit, unit) > 0 && (unit == at || before.contains(unit.value)) &&
          held[group(schedule.ops, unit)] > 0)
        least.holders.push_back(unit);
  }
  return least;
}

}  // namespace stave
