#include "scheduler/bounds/heads.h"

#include <algorithm>

#include "compiler/rational.h"

namespace stave::bounds {

namespace {

/// Choices look at heads of units that are no ancestors, so one pass does not do; each pass holds for itself.
constexpr int kMostRounds = 6;
/// Sets of two classes over all devices, for the heads of each device: about a second.
constexpr std::uint64_t kMostSets = 100'000'000;

}  // namespace

Heads::Heads(const Instance& instance, const Reach& reach, const std::vector<std::uint32_t>& order)
    : instance_(instance), reach_(reach), order_(order), into_(instance), choices_(instance.size()) {
  for (const MemoryLimit& limit : instance.limits) {
    const MemoryRule rule(instance, reach, limit);
    for (std::uint32_t c : instance.classes_of[limit.device])
      for (std::uint32_t unit : instance.classes[c].units) {
        Shortage shortage = rule.shortage(unit);
        // With one giver the arcs say all.
        if (shortage.need <= 0 || shortage.givers.size() < 2) continue;
        const Shortage::Giver& one = shortage.givers[0];
        const Shortage::Giver& two = shortage.givers[1];
        if (shortage.givers.size() == 2) sets_of_two_ += std::uint64_t(one.to - one.from) * (two.to - two.from);
        choices_[unit].push_back({&limit, std::move(shortage)});
        has_choices_ = true;
      }
  }
}

std::vector<Ticks> Heads::from_start() const {
  std::vector<Ticks> heads(instance_.size(), 0);
  propagate(heads, Choices::All);
  return heads;
}

std::vector<Ticks> Heads::from_device(std::uint32_t device) const {
  std::vector<Ticks> heads(instance_.size(), kUnknown);
  for (std::uint32_t unit = 0; unit < instance_.size(); ++unit)
    if (instance_.device(unit) == device && instance_.counts[unit]) heads[unit] = 0;
  propagate(heads, sets_of_two_ * instance_.devices() <= kMostSets ? Choices::OfTwo : Choices::None);
  return heads;
}

void Heads::propagate(std::vector<Ticks>& heads, Choices choices) const {
  // By class: what the ancestors of its latest unit keep busy, and how many of each column that has.
  std::vector<Busy> busy(instance_.classes.size());
  std::vector<std::vector<std::uint32_t>> added(instance_.classes.size());
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    for (Busy& each : busy) each.clear();
    for (std::uint32_t c = 0; c < added.size(); ++c)
      added[c].assign(instance_.classes_of[instance_.classes[c].device].size(), 0);
    for (std::uint32_t unit : order_) {
      const std::uint32_t c = instance_.class_of[unit];
      Ticks head = heads[unit];
      for (std::uint32_t k = into_.first[unit]; k < into_.first[unit + 1]; ++k) {
        const auto& [from, lag] = into_.from[k];
        if (heads[from] != kUnknown) head = std::max(head, heads[from] + instance_.length[from] + lag);
      }
      const UnitClass& own = instance_.classes[c];
      const std::vector<std::uint32_t>& classes = instance_.classes_of[own.device];
      const std::uint32_t* const before = reach_.before(unit);
      for (std::uint32_t i = 0; i < classes.size(); ++i) {
        const UnitClass& other = instance_.classes[classes[i]];
        if (other.lane != own.lane) continue;
        for (std::uint32_t& k = added[c][i]; k < before[i]; ++k)
          if (const std::uint32_t ancestor = other.units[k]; heads[ancestor] != kUnknown)
            busy[c].add(heads[ancestor], instance_.length[ancestor]);
      }
      head = std::max(head, busy[c].end());
      if (round > 0 && choices != Choices::None)
        for (const Choice& choice : choices_[unit]) {
          if (choice.shortage.givers.size() == 2)
            head = std::max(head, of_two(unit, choice, heads, busy[c]));
          else if (choices == Choices::All)
            head = std::max(head, of_several(unit, choice, heads));
        }
      changed = changed || head != heads[unit];
      heads[unit] = head;
    }
    if (!has_choices_ || choices == Choices::None || (!changed && round > 0)) break;
  }
}

/// Some k1 of one class and k2 of the other have ended before `unit` starts, and their device has done them and the
/// ancestors of `unit`: the least over all k1 with the least k2 that is enough.
Ticks Heads::of_two(std::uint32_t unit, const Choice& choice, const std::vector<Ticks>& heads,
                    const Busy& ancestors) const {
  const MemoryRule rule(instance_, reach_, *choice.limit);
  const Shortage::Giver& one = choice.shortage.givers[0];
  const Shortage::Giver& two = choice.shortage.givers[1];
  const std::uint32_t lane = instance_.lane(unit);
  Ticks best = kUnknown;
  bool found = false;
  Busy with_one = ancestors;
  Ticks elsewhere = kUnknown;
  const auto add = [&](Busy& busy, Ticks& end, std::uint32_t a_class, std::uint32_t place) {
    const std::uint32_t each = instance_.classes[a_class].units[place];
    if (heads[each] == kUnknown) return;
    if (instance_.lane(each) == lane)
      busy.add(heads[each], instance_.length[each]);
    else
      end = std::max(end, heads[each] + instance_.length[each]);
  };
  std::uint32_t need_two = two.to;
  for (std::uint32_t end_one = one.from; end_one <= one.to; ++end_one) {
    if (end_one > one.from) add(with_one, elsewhere, one.a_class, end_one - 1);
    if (found && std::max(with_one.end(), elsewhere) >= best) break;
    const std::int64_t rest = choice.shortage.need - rule.given(unit, one.a_class, one.from, end_one);
    if (rule.given(unit, two.a_class, two.from, need_two) < rest) continue;
    while (need_two > two.from && rule.given(unit, two.a_class, two.from, need_two - 1) >= rest) --need_two;
    // A set that lacks an ancestor of its own is none.
    const auto lacks = [&](const Shortage::Giver& of, std::uint32_t end, const Shortage::Giver& in, std::uint32_t has) {
      if (end == of.from) return false;
      const std::uint32_t last = instance_.classes[of.a_class].units[end - 1];
      return reach_.before(last)[reach_.column(in.a_class)] > has;
    };
    if (lacks(two, need_two, one, end_one) || lacks(one, end_one, two, need_two)) continue;
    Busy both = with_one;
    Ticks end = elsewhere;
    for (std::uint32_t place = two.from; place < need_two; ++place) add(both, end, two.a_class, place);
    end = std::max(end, both.end());
    if (!found || end < best) best = end;
    found = true;
  }
  return found ? best : kUnknown;
}

/// For any moment, what can have been given back that does not start from then on is free; the rest takes at least the
/// time of those that give most in theirs. So the device is busy from that moment on with this, and with those
/// ancestors of `unit` that start from then on.
Ticks Heads::of_several(std::uint32_t unit, const Choice& choice, const std::vector<Ticks>& heads) const {
  const MemoryRule rule(instance_, reach_, *choice.limit);
  const UnitClass& own = instance_.classes[instance_.class_of[unit]];
  struct Event {
    Ticks head = 0;
    Ticks length = 0;
    /// Index of a giver, or none of an ancestor.
    std::uint32_t giver = UINT32_MAX;
  };
  struct Rate {
    Ticks length = 0;
    std::int64_t amount = 0;
    std::int64_t left = 0;
  };
  std::vector<Event> events;
  std::vector<Rate> rates;
  std::int64_t free = 0;
  for (std::uint32_t g = 0; g < choice.shortage.givers.size(); ++g) {
    const Shortage::Giver& giver = choice.shortage.givers[g];
    const UnitClass& its = instance_.classes[giver.a_class];
    const std::int64_t amount = rule.given(unit, giver.a_class, giver.from, giver.from + 1);
    rates.push_back({its.lane == own.lane ? instance_.length[its.units[0]] : 0, amount, 0});
    for (std::uint32_t place = giver.from; place < giver.to; ++place) {
      const Ticks head = heads[its.units[place]];
      if (head == kUnknown)
        free += amount;
      else
        events.push_back({head, rates.back().length, g});
    }
  }
  const std::vector<std::uint32_t>& classes = instance_.classes_of[own.device];
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    const UnitClass& its = instance_.classes[classes[i]];
    if (its.lane != own.lane) continue;
    for (std::uint32_t k = 0; k < reach_.before(unit)[i]; ++k)
      if (heads[its.units[k]] != kUnknown) events.push_back({heads[its.units[k]], instance_.length[its.units[k]]});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.head > b.head; });
  std::vector<std::uint32_t> by_rate(rates.size());
  for (std::uint32_t g = 0; g < by_rate.size(); ++g) by_rate[g] = g;
  std::sort(by_rate.begin(), by_rate.end(), [&](std::uint32_t a, std::uint32_t b) {
    return Int128(rates[a].length) * rates[b].amount < Int128(rates[b].length) * rates[a].amount;
  });
  for (const Event& each : events)
    if (each.giver != UINT32_MAX) free += rates[each.giver].amount;
  Ticks result = kUnknown;
  Ticks ancestors = 0;
  bool some_start = false;
  for (std::size_t i = 0; i < events.size();) {
    const Ticks moment = events[i].head;
    for (; i < events.size() && events[i].head == moment; ++i) {
      if (events[i].giver == UINT32_MAX) {
        ancestors += events[i].length;
        some_start = true;
        continue;
      }
      Rate& rate = rates[events[i].giver];
      ++rate.left;
      free -= rate.amount;
    }
    std::int64_t need = choice.shortage.need - free;
    // Perhaps nothing that must come before starts so late.
    if (!some_start && need <= 0) continue;
    Ticks work = 0;
    for (std::uint32_t g : by_rate) {
      if (need <= 0) break;
      const Rate& rate = rates[g];
      const std::int64_t all = rate.left * rate.amount;
      if (all <= need) {
        work += rate.left * rate.length;
      } else {
        // A part of a unit counts as that part of its length, rounded down.
        work += static_cast<Ticks>(Int128(need) * rate.length / rate.amount);
      }
      need -= std::min(all, need);
    }
    result = std::max(result, moment + ancestors + work);
  }
  return result;
}

}  // namespace stave::bounds
