#include "scheduler/bounds/memory_arcs.h"

#include <algorithm>

namespace stave::bounds {

std::int64_t MemoryRule::given(std::uint32_t unit, std::uint32_t a_class, std::uint32_t from, std::uint32_t to) const {
  if (from >= to) return 0;
  std::int64_t result = limit_.unbacked[a_class] * std::int64_t(to - from);
  const std::uint32_t* const before = reach_.before(unit);
  for (const Backing& each : limit_.backed[a_class]) {
    const std::uint32_t end = std::min(to, before[reach_.column(each.taker)]);
    if (end > from) result += each.amount * std::int64_t(end - from);
  }
  return result;
}

Shortage MemoryRule::shortage(std::uint32_t unit) const {
  Shortage result;
  const std::uint32_t own = instance_.class_of[unit];
  if (limit_.taken[own] == 0) return result;
  const std::uint32_t* const before = reach_.before(unit);
  const std::uint32_t* const after = reach_.after(unit);
  result.need = limit_.taken[own] - limit_.most;
  for (std::uint32_t c : instance_.classes_of[limit_.device]) {
    const std::uint32_t column = reach_.column(c);
    result.need += (limit_.taken[c] - limit_.given[c]) * std::int64_t(before[column]);
  }
  if (result.need <= 0) return result;
  for (std::uint32_t c : instance_.classes_of[limit_.device]) {
    if (limit_.given[c] == 0) continue;
    const std::uint32_t column = reach_.column(c);
    Shortage::Giver giver{c, before[column], after[column]};
    if (c == own) giver.to = std::min(giver.to, instance_.place[unit]);
    // Nothing is given back for what is not taken by then.
    std::uint32_t useful = limit_.unbacked[c] > 0 ? giver.to : giver.from;
    for (const Backing& each : limit_.backed[c]) useful = std::max(useful, before[reach_.column(each.taker)]);
    giver.to = std::min(giver.to, useful);
    if (giver.from < giver.to && given(unit, c, giver.from, giver.to) > 0) result.givers.push_back(giver);
  }
  return result;
}

bool add_memory_arcs(Instance& instance, const Reach& reach) {
  bool found = false;
  const std::size_t old = instance.arcs.size();
  for (const MemoryLimit& limit : instance.limits) {
    const MemoryRule rule(instance, reach, limit);
    for (std::uint32_t c : instance.classes_of[limit.device]) {
      if (limit.taken[c] == 0) continue;
      for (std::uint32_t unit : instance.classes[c].units) {
        const Shortage shortage = rule.shortage(unit);
        if (shortage.need <= 0) continue;
        // All that can be given if `without` and what comes after it do not.
        const auto rest = [&](std::uint32_t without) {
          std::int64_t sum = 0;
          const std::uint32_t* const after = reach.after(without);
          for (const Shortage::Giver& each : shortage.givers) {
            std::uint32_t to = std::min(each.to, after[reach.column(each.a_class)]);
            if (each.a_class == instance.class_of[without]) to = std::min(to, instance.place[without]);
            sum += rule.given(unit, each.a_class, each.from, to);
          }
          return sum;
        };
        std::int64_t all = 0;
        for (const Shortage::Giver& each : shortage.givers) all += rule.given(unit, each.a_class, each.from, each.to);
        if (all < shortage.need) continue;
        for (const Shortage::Giver& each : shortage.givers) {
          const std::vector<std::uint32_t>& units = instance.classes[each.a_class].units;
          // Those that cannot be done without are the first ones.
          std::uint32_t low = each.from;
          std::uint32_t high = each.to;
          while (low < high) {
            const std::uint32_t middle = low + (high - low) / 2;
            if (rest(units[middle]) < shortage.need)
              low = middle + 1;
            else
              high = middle;
          }
          if (low == each.from) continue;
          instance.arcs.push_back({units[low - 1], unit, 0});
          found = true;
        }
      }
    }
  }
  // The same arc may have been found for two limits.
  const auto same = [](const Arc& a, const Arc& b) { return a.from == b.from && a.to == b.to; };
  const auto less = [](const Arc& a, const Arc& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; };
  const auto added = instance.arcs.begin() + static_cast<std::ptrdiff_t>(old);
  std::sort(added, instance.arcs.end(), less);
  instance.arcs.erase(std::unique(added, instance.arcs.end(), same), instance.arcs.end());
  return found;
}

}  // namespace stave::bounds
