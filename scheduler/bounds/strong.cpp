#include "scheduler/bounds/strong.h"

#include <algorithm>

#include "compiler/rational.h"
#include "scheduler/bounds/heads.h"
#include "scheduler/bounds/jackson.h"
#include "scheduler/bounds/memory_arcs.h"
#include "scheduler/bounds/reach.h"

namespace stave::bounds {

namespace {

/// Arcs lead to ancestors, and they to more arcs.
constexpr int kMostArcRounds = 6;
/// Takers of a device times units, for lifetimes of the area bound by all arcs.
constexpr std::uint64_t kMostLifetimes = 500'000;

class Bounding {
 public:
  Bounding(const Instance& forwards, const std::vector<std::uint32_t>& order, const Reach& reach)
      : forwards_(forwards),
        backwards_(reversed(forwards)),
        order_(order),
        back_order_(order.rbegin(), order.rend()),
        back_reach_(reach.reversed(forwards)),
        heads_(forwards, reach, order),
        tails_(backwards_, back_reach_, back_order_) {}

  Ticks makespan() const {
    const std::vector<Ticks> heads = heads_.from_start();
    const std::vector<Ticks> tails = tails_.from_start();
    Ticks result = 0;
    for (std::uint32_t lane = 0; lane < forwards_.lanes; ++lane)
      result = std::max(result, of_lane(lane, heads, tails));
    for (std::uint32_t unit = 0; unit < forwards_.size(); ++unit)
      result = std::max(result, heads[unit] + forwards_.length[unit] + tails[unit]);
    for (const MemoryLimit& limit : forwards_.limits) result = std::max(result, area(limit, heads, tails));
    return result;
  }

  Ticks span(std::uint32_t device) const {
    const std::vector<Ticks> heads = heads_.from_device(device);
    const std::vector<Ticks> tails = tails_.from_device(device);
    Ticks result = 0;
    for (std::uint32_t unit = 0; unit < forwards_.size(); ++unit)
      if (heads[unit] != Heads::kUnknown && tails[unit] != Heads::kUnknown)
        result = std::max(result, heads[unit] + forwards_.length[unit] + tails[unit]);
    for (std::uint32_t c : forwards_.classes_of[device])
      result = std::max(result, of_lane(forwards_.classes[c].lane, heads, tails));
    return result;
  }

 private:
  Ticks of_lane(std::uint32_t lane, const std::vector<Ticks>& heads, const std::vector<Ticks>& tails) const {
    std::vector<Job> jobs;
    for (const UnitClass& each : forwards_.classes) {
      if (each.lane != lane) continue;
      for (std::uint32_t unit : each.units)
        if (heads[unit] != Heads::kUnknown && tails[unit] != Heads::kUnknown)
          jobs.push_back({heads[unit], forwards_.length[unit], tails[unit]});
    }
    return jackson(std::move(jobs));
  }

  /// Capacity times time against sizes times their shortest lifetimes.
  Ticks area(const MemoryLimit& limit, const std::vector<Ticks>& heads, const std::vector<Ticks>& tails) const {
    if (limit.most <= 0) return 0;
    std::uint64_t takers = 0;
    for (std::uint32_t c : forwards_.classes_of[limit.device])
      if (limit.taken[c] > 0) takers += forwards_.classes[c].units.size();
    // By needs alone the units of a class have the same lifetimes.
    const bool each = takers * forwards_.size() <= kMostLifetimes;
    const ArcsInto into(forwards_, each ? forwards_.arcs.size() : forwards_.needs);
    Int128 area = 0;
    Ticks head = INT64_MAX;
    Ticks tail = INT64_MAX;
    for (std::uint32_t c : forwards_.classes_of[limit.device]) {
      const std::vector<std::uint32_t>& units = forwards_.classes[c].units;
      if (limit.given[c] > 0)
        for (std::uint32_t unit : units) tail = std::min(tail, tails[unit]);
      if (limit.taken[c] == 0) continue;
      for (std::uint32_t unit : units) head = std::min(head, heads[unit]);
      if (!each) area += taken_by(limit, units[0], into) * static_cast<Int128>(units.size());
      for (std::size_t k = 0; each && k < units.size(); ++k) area += taken_by(limit, units[k], into);
    }
    if (head == INT64_MAX || tail == INT64_MAX) return 0;
    const Int128 result = Int128(head) + (area + limit.most - 1) / limit.most + tail;
    return result <= kMaxTicks ? static_cast<Ticks>(result) : 0;
  }

  /// Sizes times the longest chains from the start of `taker` to the end of what gives them back.
  Int128 taken_by(const MemoryLimit& limit, std::uint32_t taker, const ArcsInto& into) const {
    std::vector<Ticks> from(forwards_.size(), Heads::kUnknown);
    from[taker] = 0;
    for (std::uint32_t unit : order_)
      for (std::uint32_t k = into.first[unit]; k < into.first[unit + 1]; ++k) {
        const auto& [before, lag] = into.from[k];
        if (from[before] != Heads::kUnknown)
          from[unit] = std::max(from[unit], from[before] + forwards_.length[before] + lag);
      }
    Int128 result = 0;
    for (std::uint32_t c : forwards_.classes_of[limit.device])
      for (const Backing& each : limit.backed[c]) {
        if (each.taker != forwards_.class_of[taker]) continue;
        const std::uint32_t giver = forwards_.classes[c].units[forwards_.place[taker]];
        if (from[giver] != Heads::kUnknown) result += Int128(each.amount) * (from[giver] + forwards_.length[giver]);
      }
    return result;
  }

  const Instance& forwards_;
  const Instance backwards_;
  const std::vector<std::uint32_t>& order_;
  const std::vector<std::uint32_t> back_order_;
  const Reach back_reach_;
  const Heads heads_;
  const Heads tails_;
};

}  // namespace

std::optional<Strong> strong_bound(Instance instance, bool span) {
  std::optional<std::vector<std::uint32_t>> order = topological(instance);
  if (!order) return std::nullopt;
  Reach reach(instance, *order);
  for (int round = 0; round < kMostArcRounds && !instance.limits.empty(); ++round) {
    const std::size_t old = instance.arcs.size();
    // Of time running backwards too: what takes there is what gives here.
    Instance back = reversed(instance);
    const bool backwards = add_memory_arcs(back, reach.reversed(instance));
    const bool forwards = add_memory_arcs(instance, reach);
    if (!forwards && !backwards) break;
    for (std::size_t i = old; i < back.arcs.size(); ++i)
      instance.arcs.push_back({back.arcs[i].to, back.arcs[i].from, back.arcs[i].lag});
    order = topological(instance);
    if (!order) return std::nullopt;
    reach = Reach(instance, *order);
  }
  const Bounding bounding(instance, *order, reach);
  Strong result;
  result.makespan = bounding.makespan();
  if (!span) return result;
  result.span = 0;
  for (std::uint32_t d = 0; d < instance.devices(); ++d) result.span = std::max(*result.span, bounding.span(d));
  return result;
}

}  // namespace stave::bounds
