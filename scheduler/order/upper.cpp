#include "scheduler/order/upper.h"

#include <algorithm>

#include "core/check.h"

namespace stave {

std::vector<Readiness> nothing_ready(const Units& units) {
  std::vector<Readiness> result(units.needs().size());
  for (std::size_t op = 0; op < result.size(); ++op) result[op].waits = units.needs()[op];
  return result;
}

Upper::Upper(const Units& units, std::vector<Readiness>& readiness) : units_(units), readiness_(readiness) {
  limits_.resize(units.schedule().devices);
  for (std::uint32_t d = 0; d < limits_.size(); ++d)
    for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
      limits_[DeviceId(d)][limit] = units.limit(limit, DeviceId(d));
  for (const Units::Lane& from : units.lanes()) {
    Lane& to = lanes_.emplace_back();
    for (const OrderBlock* written : from.blocks) {
      Block block;
      block.written = written;
      if (written->kind == OrderKind::Any) {
        const auto size = static_cast<std::uint32_t>(written->ops.size());
        block.free = ReadySet(size);
        block.takers = ReadySet(size);
        block.uniform_takers = true;
        const OpId* before = nullptr;
        for (const OpId& unit : written->ops) {
          if (!takes(limits_[from.device], unit)) continue;
          if (before != nullptr) {
            bool like = units.microbatch(*before) <= units.microbatch(unit);
            for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
              like = like && units.taken(limit, *before) == units.taken(limit, unit);
            block.uniform_takers = block.uniform_takers && like;
          }
          before = &unit;
        }
      }
      if (written->kind != OrderKind::Fill)
        for (std::size_t i = 0; i < written->ops.size(); i += units.partner(written->ops[i]).valid() ? 2 : 1)
          waiting_ += !units.optional(written->ops[i]);
      to.blocks.push_back(std::move(block));
    }
  }
}

bool Upper::goes_on(Ticks time) const {
  if (waiting_ > 0) return true;
  for (const Lane& each : lanes_)
    for (std::size_t i = each.started.size(); i-- > 0;) {
      const Started& last = each.started[i];
      if (units_.optional(last.unit)) continue;
      if (last.start + units_.duration(last.unit) >= time) return true;
      break;
    }
  return false;
}

std::optional<Ticks> Upper::next_moment() {
  if (!begun_) return 0;
  while (!events_.empty() && !is_current(events_.top())) events_.pop();
  if (events_.empty()) return std::nullopt;
  return events_.top().time;
}

void Upper::step() {
  const std::optional<Ticks> moment = next_moment();
  STAVE_CHECK(moment.has_value(), "a step without a moment");
  if (units_.has_fills()) journal_.begin(*moment);
  if (!begun_) {
    begun_ = true;
    for (const Units::Lane& each : units_.lanes())
      for (const OrderBlock* block : each.blocks)
        for (OpId unit : block->ops)
          if (block->kind == OrderKind::Any && readiness_[unit.value].waits == 0) offer(unit);
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) mark_dirty(i);
  }
  do {
    while (next_moment() == moment && !events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      note(ChangeKind::Popped, event.unit, event.time, event.kind);
      apply(event);
    }
    std::sort(dirty_.begin(), dirty_.end());
    for (std::uint32_t i : dirty_) {
      lanes_[i].dirty = false;
      serve(i, *moment);
    }
    dirty_.clear();
  } while (next_moment() == moment);
}

bool Upper::is_current(const Event& event) const {
  switch (event.kind) {
    case EventKind::End: {
      const Lane& mine = lane(event.unit);
      return mine.running == event.unit && mine.until == event.time;
    }
    case EventKind::FillEnd:
      return true;
    case EventKind::Ready:
      return readiness_[event.unit.value].waits == 0 && readiness_[event.unit.value].time == event.time;
  }
  return false;
}

void Upper::apply(const Event& event) {
  switch (event.kind) {
    case EventKind::End:
      lane(event.unit).running = OpId();
      end(event.unit, event.time);
      break;
    case EventKind::FillEnd:
      end(event.unit, event.time);
      break;
    case EventKind::Ready:
      offer(event.unit);
      break;
  }
}

void Upper::end(OpId unit, Ticks time) {
  const DeviceId d = units_.device(unit);
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (std::optional<Limit>& mine = limits_[d][limit])
      units_.for_each_size(limit, unit, [&](std::uint32_t m, std::int64_t, std::int64_t given) { mine->give(m, given); });
  ended_.push_back({unit, time});
  note(ChangeKind::Ended, unit);
  units_.for_each_successor(unit, [&](const Successor& successor, OpId op) { arrive(successor, op, d, time); });
  // What it gave back may let another lane of the device go on.
  for (std::uint32_t each : units_.lanes_of(d)) mark_dirty(each);
}

void Upper::arrive(const Successor& successor, OpId op, DeviceId from, Ticks time) {
  const OpId unit = successor.unit;
  if (units_.info(unit).fill) return;
  note(ChangeKind::Arrived, unit, readiness_[unit.value].time);
  const Ticks arrival = time + units_.message(op, from, units_.device(unit), successor.payload);
  readiness_[unit.value].time = std::max(readiness_[unit.value].time, arrival);
  if (--readiness_[unit.value].waits > 0) return;
  if (readiness_[unit.value].time > time)
    events_.push({readiness_[unit.value].time, unit, EventKind::Ready});
  else
    offer(unit);
}

void Upper::offer(OpId unit) {
  const UnitInfo& place = units_.info(unit);
  Block& block = lanes_[place.lane].blocks[place.block];
  if (block.written->kind == OrderKind::Any) {
    (takes(limits_[units_.device(unit)], unit) ? block.takers : block.free).insert(place.rank);
    note(ChangeKind::Offered, unit);
  }
  mark_dirty(place.lane);
}

void Upper::mark_dirty(std::uint32_t lane) {
  if (lanes_[lane].dirty) return;
  lanes_[lane].dirty = true;
  dirty_.push_back(lane);
}

void Upper::serve(std::uint32_t lane, Ticks time) {
  Lane& mine = lanes_[lane];
  if (mine.running.valid() || mine.fill_until > time) return;
  const Limits& limits = limits_[units_.lanes()[lane].device];
  for (Block& block : mine.blocks) {
    if (block.written->kind == OrderKind::Fill) continue;
    const std::optional<OpId> unit = choose(limits, block, time);
    if (!unit) continue;
    const std::span<const OpId> all = units_.together(*unit);
    if (all.empty()) return start(lane, block, *unit, time);
    for (OpId each : all) {
      const UnitInfo& place = units_.info(each);
      start(place.lane, lanes_[place.lane].blocks[place.block], each, time);
    }
    return;
  }
}

/// Whether the block of a unit could start it: it is next in its list, or ready in its `any`.
bool Upper::is_offered(OpId unit, Ticks time) const {
  const UnitInfo& place = units_.info(unit);
  const Block& block = lanes_[place.lane].blocks[place.block];
  if (block.written->kind == OrderKind::Any)
    return block.free.contains(place.rank) || block.takers.contains(place.rank);
  return block.next < block.written->ops.size() && block.written->ops[block.next] == unit &&
         readiness_[unit.value].waits == 0 && readiness_[unit.value].time <= time;
}

/// What runs on several devices at once starts when the last of them is free for it.
bool Upper::can_start(OpId unit, Ticks time) const {
  for (OpId each : units_.together(unit)) {
    const Lane& mine = lane(each);
    if (mine.running.valid() || mine.fill_until > time || !is_offered(each, time)) return false;
  }
  return true;
}

std::optional<OpId> Upper::choose(const Limits& limits, const Block& block, Ticks time) const {
  const std::vector<OpId>& ops = block.written->ops;
  if (block.written->kind == OrderKind::List) {
    if (block.next == ops.size()) return std::nullopt;
    const OpId unit = ops[block.next];
    const bool ready = readiness_[unit.value].waits == 0 && readiness_[unit.value].time <= time;
    return ready && fits_list(limits, unit) && can_start(unit, time) ? std::optional<OpId>(unit) : std::nullopt;
  }
  std::uint32_t best = block.free.first();
  while (best != ReadySet::kNone && !can_start(ops[best], time)) best = block.free.first(best + 1);
  for (std::uint32_t i = block.takers.first(); i < best; i = block.takers.first(i + 1)) {
    if (fits_with_room(limits, ops[i])) best = i;
    if (block.uniform_takers) break;
  }
  return best == ReadySet::kNone ? std::nullopt : std::optional<OpId>(ops[best]);
}

void Upper::start(std::uint32_t lane, Block& block, OpId unit, Ticks time) {
  Lane& mine = lanes_[lane];
  if (block.written->kind == OrderKind::List) {
    block.next += units_.partner(unit).valid() ? 2 : 1;
    note(ChangeKind::StartedList, unit, mine.until);
  } else {
    (takes(limits_[units_.device(unit)], unit) ? block.takers : block.free).erase(units_.info(unit).rank);
    note(ChangeKind::StartedAny, unit, mine.until);
  }
  take(unit);
  waiting_ -= !units_.optional(unit);
  time = set_up(lane, unit, time);
  mine.running = unit;
  mine.until = time + units_.duration(unit);
  mine.started.push_back({unit, time, next_number()});
  events_.push({mine.until, unit, EventKind::End});
}

Ticks Upper::set_up(std::uint32_t lane, OpId unit, Ticks time) const {
  if (!units_.has_setups()) return time;
  const Lane& mine = lanes_[lane];
  OpId last = mine.last_fill;
  Ticks end = mine.fill_until;
  if (!mine.started.empty()) {
    const Started& above = mine.started.back();
    const Ticks above_end = above.start + units_.duration(above.unit);
    if (!last.valid() || above_end >= end) {
      last = above.unit;
      end = above_end;
    }
  }
  return last.valid() ? std::max(time, end + units_.setup(last, unit)) : time;
}

void Upper::take(OpId unit) {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (std::optional<Limit>& mine = limits_[units_.device(unit)][limit])
      units_.for_each_size(limit, unit, [&](std::uint32_t m, std::int64_t taken, std::int64_t) { mine->take(m, taken); });
}

void Upper::untake(OpId unit) {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (std::optional<Limit>& mine = limits_[units_.device(unit)][limit])
      units_.for_each_size(limit, unit,
                           [&](std::uint32_t m, std::int64_t taken, std::int64_t) { mine->untake(m, taken); });
}

void Upper::take_back(Ticks time, bool keep_same) {
  journal_.take_back([&](Ticks moment) { return keep_same ? moment > time : moment >= time; },
                     [&](const Change& change) { undo(change); });
}

void Upper::undo(const Change& change) {
  const OpId unit = change.unit;
  Lane& mine = lane(unit);
  Limits& limits = limits_[units_.device(unit)];
  const UnitInfo& place = units_.info(unit);
  switch (change.kind) {
    case ChangeKind::Popped:
      if (change.event == EventKind::End) mine.running = unit;
      events_.push({change.time, unit, change.event});
      break;
    case ChangeKind::Ended:
      ended_.pop_back();
      for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
        if (limits[limit])
          units_.for_each_size(limit, unit, [&](std::uint32_t m, std::int64_t, std::int64_t given) {
            limits[limit]->ungive(m, given);
          });
      break;
    case ChangeKind::Arrived:
      ++readiness_[unit.value].waits;
      readiness_[unit.value].time = change.time;
      break;
    case ChangeKind::Offered:
      (takes(limits, unit) ? mine.blocks[place.block].takers : mine.blocks[place.block].free).erase(place.rank);
      break;
    case ChangeKind::StartedList:
    case ChangeKind::StartedAny: {
      Block& block = mine.blocks[place.block];
      if (change.kind == ChangeKind::StartedList)
        block.next -= units_.partner(unit).valid() ? 2 : 1;
      else
        (takes(limits, unit) ? block.takers : block.free).insert(place.rank);
      untake(unit);
      waiting_ += !units_.optional(unit);
      mine.running = OpId();
      mine.until = change.time;
      mine.started.pop_back();
      break;
    }
  }
}

bool Upper::takes(const Limits& limits, OpId unit) const {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (limits[limit] && units_.taken(limit, unit) > 0) return true;
  return false;
}

bool Upper::fits_list(const Limits& limits, OpId unit) const {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (limits[limit] && !limits[limit]->fits(units_.taken(limit, unit))) return false;
  return true;
}

bool Upper::fits_with_room(const Limits& limits, OpId unit) const {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (limits[limit] && !limits[limit]->fits_with_room(units_.microbatch(unit), units_.taken(limit, unit)))
      return false;
  return true;
}

bool Upper::fits_fill(OpId unit) const { return fits_with_room(limits_[units_.device(unit)], unit); }

void Upper::start_fill(OpId unit, Ticks start) {
  const Ticks duration = units_.duration(unit);
  take_back(start + duration, duration == 0);
  take(unit);
  lane(unit).fill_until = start + duration;
  lane(unit).last_fill = unit;
  events_.push({start + duration, unit, EventKind::FillEnd});
}

std::optional<OpId> Upper::held_by_limit(DeviceId d) const {
  for (std::uint32_t each : units_.lanes_of(d)) {
    for (const Block& block : lanes_[each].blocks) {
      if (block.written->kind != OrderKind::List || block.next == block.written->ops.size()) continue;
      const OpId unit = block.written->ops[block.next];
      if (readiness_[unit.value].waits == 0 && !fits_list(limits_[d], unit)) return unit;
    }
  }
  return std::nullopt;
}

}  // namespace stave
