#include "scheduler/order/fills.h"

#include <algorithm>

namespace stave {

Fills::Fills(const Units& units, std::vector<Readiness>& readiness, Upper& upper)
    : units_(units), readiness_(readiness), upper_(upper) {
  for (const Units::Lane& from : units.lanes()) {
    Lane& to = lanes_.emplace_back();
    for (const OrderBlock* written : from.blocks) {
      Block block;
      if (written->kind == OrderKind::Fill) {
        block.written = written;
        block.ready = ReadySet(static_cast<std::uint32_t>(written->ops.size()));
        for (OpId unit : written->ops) {
          block.shortest = std::min(block.shortest, units.duration(unit));
          waiting_ += !units.optional(unit);
        }
      }
      to.blocks.push_back(std::move(block));
    }
    for (const Block& block : to.blocks)
      if (block.written != nullptr)
        for (OpId unit : block.written->ops)
          if (readiness_[unit.value].waits == 0) arrivals_.push({0, unit});
  }
}

void Fills::run() {
  while (const std::optional<Ticks> now = next_time()) {
    while (upper_.next_moment() && *upper_.next_moment() <= *now) upper_.step();
    upper_.settle(*now);
    hear_of_ends(*now);
    while (!arrivals_.empty() && arrivals_.top().time <= *now) {
      offer(arrivals_.top().unit);
      arrivals_.pop();
    }
    std::sort(candidates_.begin(), candidates_.end());
    for (std::uint32_t lane : candidates_) {
      lanes_[lane].candidate = false;
      decide(lane, *now);
    }
    candidates_.clear();
  }
}

std::optional<Ticks> Fills::next_time() {
  for (;;) {
    std::optional<Ticks> next;
    if (heard_ < upper_.ended().size()) next = upper_.ended()[heard_].time;
    if (!arrivals_.empty() && (!next || arrivals_.top().time < *next)) next = arrivals_.top().time;
    const std::optional<Ticks> moment = upper_.next_moment();
    if (!moment || (next && *next <= *moment)) return next;
    upper_.step();
  }
}

void Fills::hear_of_ends(Ticks now) {
  for (; heard_ < upper_.ended().size() && upper_.ended()[heard_].time <= now; ++heard_) {
    const Ended ended = upper_.ended()[heard_];
    const DeviceId from = units_.device(ended.unit);
    units_.for_each_successor(ended.unit, [&](const Successor& successor, OpId op) {
      const OpId unit = successor.unit;
      if (!units_.info(unit).fill) return;
      const Ticks arrival = ended.time + units_.message(op, from, units_.device(unit), successor.payload);
      readiness_[unit.value].time = std::max(readiness_[unit.value].time, arrival);
      if (--readiness_[unit.value].waits == 0) arrivals_.push({readiness_[unit.value].time, unit});
    });
    for (std::uint32_t lane : units_.lanes_of(from)) consider(lane);
  }
}

void Fills::offer(OpId unit) {
  const UnitInfo& place = units_.info(unit);
  lanes_[place.lane].blocks[place.block].ready.insert(place.rank);
  ++lanes_[place.lane].ready;
  consider(place.lane);
}

void Fills::consider(std::uint32_t lane) {
  if (lanes_[lane].candidate || lanes_[lane].ready == 0) return;
  lanes_[lane].candidate = true;
  candidates_.push_back(lane);
}

/// Upper keeps the ops that have ended by `now` for good, so the walk over them never goes back.
bool Fills::idle(std::uint32_t lane, Ticks now) {
  if (upper_.fill_until(lane) > now) return false;
  const std::vector<Started>& above = upper_.started(lane);
  std::size_t& next = lanes_[lane].next_upper;
  while (next < above.size() && above[next].start + units_.duration(above[next].unit) <= now) ++next;
  return next == above.size() || above[next].start > now;
}

/// Whether the blocks above leave the lane idle until `until`, when `unit` would end, and it can change to what comes then.
bool Fills::stays_idle(std::uint32_t lane, OpId unit, Ticks until) {
  const std::size_t next = lanes_[lane].next_upper;
  for (;;) {
    const std::vector<Started>& above = upper_.started(lane);
    if (next < above.size()) return above[next].start >= until + units_.setup(unit, above[next].unit);
    const std::optional<Ticks> moment = upper_.next_moment();
    if (!moment || *moment >= until + units_.longest_setup()) return true;
    upper_.step();
  }
}

bool Fills::takes(OpId unit) const {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (units_.taken(limit, unit) > 0) return true;
  return false;
}

/// An optional op is filled while there is other work: it ends before the last of that does, on whatever device.
bool Fills::is_too_late(OpId unit, Ticks end) const {
  return units_.optional(unit) && waiting_ == 0 && latest_ < end && !upper_.goes_on(end);
}

void Fills::decide(std::uint32_t lane, Ticks now) {
  if (!idle(lane, now)) return;
  Lane& mine = lanes_[lane];
  for (Block& block : mine.blocks) {
    if (block.written == nullptr) continue;
    // Ops at least this long have been found not to fit.
    Ticks too_long = kMaxTicks;
    for (std::uint32_t i = block.ready.first(); i != ReadySet::kNone; i = block.ready.first(i + 1)) {
      const OpId unit = block.written->ops[i];
      const Ticks start = upper_.set_up(lane, unit, now);
      const Ticks duration = start - now + units_.duration(unit);
      if (duration >= too_long) continue;
      if (!stays_idle(lane, unit, now + duration)) {
        too_long = duration;
        if (too_long <= block.shortest) break;
        continue;
      }
      if (is_too_late(unit, now + duration)) continue;
      if (takes(unit)) {
        upper_.take_back(now, true);
        if (!upper_.fits_fill(unit)) continue;
      }
      block.ready.erase(i);
      --mine.ready;
      if (!units_.optional(unit)) {
        --waiting_;
        latest_ = std::max(latest_, now + duration);
      }
      mine.started.push_back({unit, start, upper_.next_number()});
      upper_.start_fill(unit, start);
      return;
    }
  }
}

}  // namespace stave
