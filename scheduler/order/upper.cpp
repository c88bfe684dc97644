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
  const Schedule& schedule = units.schedule();
  devices_.resize(schedule.devices);
  for (std::uint32_t d = 0; d < schedule.devices; ++d) {
    Device& device = devices_[DeviceId(d)];
    for (std::size_t limit = 0; limit < Units::kLimits; ++limit) device.limits[limit] = units.limit(limit, DeviceId(d));
    for (const OrderBlock& written : schedule.orders[DeviceId(d)].blocks) {
      Block block;
      block.written = &written;
      if (written.kind == OrderKind::Any) {
        const auto size = static_cast<std::uint32_t>(written.ops.size());
        block.free = ReadySet(size);
        block.takers = ReadySet(size);
        block.uniform_takers = true;
        const OpId* before = nullptr;
        for (const OpId& unit : written.ops) {
          if (!takes(device, unit)) continue;
          if (before != nullptr) {
            bool like = units.microbatch(*before) <= units.microbatch(unit);
            for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
              like = like && units.taken(limit, *before) == units.taken(limit, unit);
            block.uniform_takers = block.uniform_takers && like;
          }
          before = &unit;
        }
      }
      device.blocks.push_back(std::move(block));
    }
  }
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
    for (const DeviceOrder& order : units_.schedule().orders)
      for (const OrderBlock& block : order.blocks)
        for (OpId unit : block.ops)
          if (block.kind == OrderKind::Any && readiness_[unit.value].waits == 0) offer(unit);
    for (std::uint32_t d = 0; d < devices_.size(); ++d) mark_dirty(DeviceId(d));
  }
  do {
    while (next_moment() == moment && !events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      note(ChangeKind::Popped, event.unit, event.time, event.kind);
      apply(event);
    }
    std::sort(dirty_.begin(), dirty_.end());
    for (DeviceId d : dirty_) {
      devices_[d].dirty = false;
      serve(d, *moment);
    }
    dirty_.clear();
  } while (next_moment() == moment);
}

bool Upper::is_current(const Event& event) const {
  switch (event.kind) {
    case EventKind::End: {
      const Device& device = devices_[units_.device(event.unit)];
      return device.running == event.unit && device.until == event.time;
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
      devices_[units_.device(event.unit)].running = OpId();
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
    if (devices_[d].limits[limit]) devices_[d].limits[limit]->give(units_.microbatch(unit), units_.given(limit, unit));
  ended_.push_back({unit, time});
  note(ChangeKind::Ended, unit);
  units_.for_each_successor(unit, [&](const Successor& successor) { arrive(successor, d, time); });
  mark_dirty(d);
}

void Upper::arrive(const Successor& successor, DeviceId from, Ticks time) {
  const OpId unit = successor.unit;
  if (units_.info(unit).fill) return;
  note(ChangeKind::Arrived, unit, readiness_[unit.value].time);
  const Ticks arrival = time + units_.message(from, units_.device(unit), successor.payload);
  readiness_[unit.value].time = std::max(readiness_[unit.value].time, arrival);
  if (--readiness_[unit.value].waits > 0) return;
  if (readiness_[unit.value].time > time)
    events_.push({readiness_[unit.value].time, unit, EventKind::Ready});
  else
    offer(unit);
}

void Upper::offer(OpId unit) {
  const UnitInfo& place = units_.info(unit);
  const DeviceId d = units_.device(unit);
  Device& device = devices_[d];
  Block& block = device.blocks[place.block];
  if (block.written->kind == OrderKind::Any) {
    (takes(device, unit) ? block.takers : block.free).insert(place.rank);
    note(ChangeKind::Offered, unit);
  }
  mark_dirty(d);
}

void Upper::mark_dirty(DeviceId d) {
  if (devices_[d].dirty) return;
  devices_[d].dirty = true;
  dirty_.push_back(d);
}

void Upper::serve(DeviceId d, Ticks time) {
  Device& device = devices_[d];
  if (device.running.valid() || device.fill_until > time) return;
  for (Block& block : device.blocks) {
    if (block.written->kind == OrderKind::Fill) continue;
    if (const std::optional<OpId> unit = choose(device, block, time)) return start(d, block, *unit, time);
  }
}

std::optional<OpId> Upper::choose(Device& device, const Block& block, Ticks time) const {
  const std::vector<OpId>& ops = block.written->ops;
  if (block.written->kind == OrderKind::List) {
    if (block.next == ops.size()) return std::nullopt;
    const OpId unit = ops[block.next];
    const bool ready = readiness_[unit.value].waits == 0 && readiness_[unit.value].time <= time;
    return ready && fits_list(device, unit) ? std::optional<OpId>(unit) : std::nullopt;
  }
  std::uint32_t best = block.free.first();
  for (std::uint32_t i = block.takers.first(); i < best; i = block.takers.first(i + 1)) {
    if (fits_with_room(device, ops[i])) best = i;
    if (block.uniform_takers) break;
  }
  return best == ReadySet::kNone ? std::nullopt : std::optional<OpId>(ops[best]);
}

void Upper::start(DeviceId d, Block& block, OpId unit, Ticks time) {
  Device& device = devices_[d];
  if (block.written->kind == OrderKind::List) {
    ++block.next;
    note(ChangeKind::StartedList, unit, device.until);
  } else {
    (takes(device, unit) ? block.takers : block.free).erase(units_.info(unit).rank);
    note(ChangeKind::StartedAny, unit, device.until);
  }
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (device.limits[limit]) device.limits[limit]->take(units_.microbatch(unit), units_.taken(limit, unit));
  device.running = unit;
  device.until = time + units_.duration(unit);
  device.started.push_back({unit, time, next_number()});
  events_.push({device.until, unit, EventKind::End});
}

void Upper::take_back(Ticks time, bool keep_same) {
  journal_.take_back([&](Ticks moment) { return keep_same ? moment > time : moment >= time; },
                     [&](const Change& change) { undo(change); });
}

void Upper::undo(const Change& change) {
  const OpId unit = change.unit;
  const DeviceId d = units_.device(unit);
  Device& device = devices_[d];
  const UnitInfo& place = units_.info(unit);
  switch (change.kind) {
    case ChangeKind::Popped:
      if (change.event == EventKind::End) device.running = unit;
      events_.push({change.time, unit, change.event});
      break;
    case ChangeKind::Ended:
      ended_.pop_back();
      for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
        if (device.limits[limit]) device.limits[limit]->ungive(units_.microbatch(unit), units_.given(limit, unit));
      break;
    case ChangeKind::Arrived:
      ++readiness_[unit.value].waits;
      readiness_[unit.value].time = change.time;
      break;
    case ChangeKind::Offered:
      (takes(device, unit) ? device.blocks[place.block].takers : device.blocks[place.block].free).erase(place.rank);
      break;
    case ChangeKind::StartedList:
    case ChangeKind::StartedAny: {
      Block& block = device.blocks[place.block];
      if (change.kind == ChangeKind::StartedList)
        --block.next;
      else
        (takes(device, unit) ? block.takers : block.free).insert(place.rank);
      for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
        if (device.limits[limit]) device.limits[limit]->untake(units_.microbatch(unit), units_.taken(limit, unit));
      device.running = OpId();
      device.until = change.time;
      device.started.pop_back();
      break;
    }
  }
}

bool Upper::takes(const Device& device, OpId unit) const {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (device.limits[limit] && units_.taken(limit, unit) > 0) return true;
  return false;
}

bool Upper::fits_list(const Device& device, OpId unit) const {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (device.limits[limit] && !device.limits[limit]->fits(units_.taken(limit, unit))) return false;
  return true;
}

bool Upper::fits_with_room(const Device& device, OpId unit) const {
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (device.limits[limit] &&
        !device.limits[limit]->fits_with_room(units_.microbatch(unit), units_.taken(limit, unit)))
      return false;
  return true;
}

bool Upper::fits_fill(OpId unit) const { return fits_with_room(devices_[units_.device(unit)], unit); }

void Upper::start_fill(OpId unit, Ticks start) {
  Device& device = devices_[units_.device(unit)];
  const Ticks duration = units_.duration(unit);
  take_back(start + duration, duration == 0);
  for (std::size_t limit = 0; limit < Units::kLimits; ++limit)
    if (device.limits[limit]) device.limits[limit]->take(units_.microbatch(unit), units_.taken(limit, unit));
  device.fill_until = start + duration;
  events_.push({start + duration, unit, EventKind::FillEnd});
}

std::optional<OpId> Upper::held_by_limit(DeviceId d) const {
  const Device& device = devices_[d];
  for (const Block& block : device.blocks) {
    if (block.written->kind != OrderKind::List || block.next == block.written->ops.size()) continue;
    const OpId unit = block.written->ops[block.next];
    if (readiness_[unit.value].waits == 0 && !fits_list(device, unit)) return unit;
  }
  return std::nullopt;
}

}  // namespace stave
