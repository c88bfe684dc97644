#include "scheduler/idle.h"

#include <algorithm>
#include <utility>

#include "core/lanes.h"
#include "scheduler/contention/buffers.h"
#include "scheduler/held_back.h"

namespace stave {

namespace {

/// By kind: does it run a forward, by itself or as a part?
std::vector<bool> forward_kinds(const OpSet& ops) {
  std::vector<bool> result;
  for (const OpKind& kind : ops.kinds()) {
    bool forward = kind.operation == Operation::Forward;
    for (KindId part : kind.parts) forward = forward || ops.kinds()[part].operation == Operation::Forward;
    result.push_back(forward);
  }
  return result;
}

class Attribution {
 public:
  Attribution(const Schedule& schedule, const Program& program, const Timeline& times)
      : setups_(schedule.costs.setups),
        program_(program),
        times_(times),
        lanes_(program.table),
        block_of_(blocks_of(program.table)),
        forward_(forward_kinds(program.table.ops)),
        held_back_(schedule, program, times, lanes_) {}

  /// Of its computing: what runs beside it does not keep it from idling.
  Idle of(DeviceId device, Ticks makespan) {
    Idle idle = {};
    std::uint32_t first = Lanes::kNone;
    std::uint32_t last = Lanes::kNone;
    std::uint32_t last_forward = 0;
    for (std::uint32_t at = lanes_.head(device.value); at != Lanes::kNone; at = lanes_.next(at)) {
      if (!counts(at)) continue;
      if (first == Lanes::kNone) first = at;
      last = at;
      if (is_forward(at)) last_forward = at;
    }
    if (first == Lanes::kNone) {
      add(idle, IdleCause::Imbalance, makespan);
      return idle;
    }
    held_back_.enter(device);
    add(idle, IdleCause::Filling, times_.start[first]);
    std::uint32_t before = first;
    for (std::uint32_t at = lanes_.next(first); before != last; at = lanes_.next(at)) {
      if (!counts(at)) continue;
      wait(idle, device, at, times_.end[before], at > last_forward);
      before = at;
    }
    add(idle, IdleCause::Imbalance, makespan - times_.end[last]);
    return idle;
  }

 private:
  static void add(Idle& idle, IdleCause cause, Ticks time) { idle[static_cast<std::size_t>(cause)] += time; }

  /// Optional ops are no part of the makespan.
  bool counts(std::uint32_t position) const {
    return !program_.table.ops.kind(program_.table.entries[position]).optional;
  }
  bool is_forward(std::uint32_t position) const {
    return forward_[program_.table.ops.kind_of(program_.table.entries[position]).value];
  }

  /// Of what a position, or any of its block, waits for, the one that ends last: of what it reads, and of what still
  /// reads a slot that it writes.
  void find_last(DeviceId device, std::uint32_t position, NodeId& data, NodeId& slot) const {
    const auto look = [&](std::uint32_t each) {
      const auto end = [&](NodeId before) { return let_go(program_, lanes_, times_, before, NodeId(each)); };
      for (NodeId before : program_.waits[each]) {
        const bool leaves =
            program_.is_message(before) && program_.edges[program_.message(before).edge.value].source == device;
        NodeId& last = leaves ? slot : data;
        if (!last.valid() || end(before) > end(last)) last = before;
      }
    };
    if (block_of_.empty() || block_of_[position] == UINT32_MAX) return look(position);
    for (std::uint32_t each : program_.table.blocks[block_of_[position]]) look(each);
  }

  void wait(Idle& idle, DeviceId device, std::uint32_t position, Ticks from, bool draining) {
    Ticks until = times_.start[position];
    if (from >= until) return;
    // From back to front, each cause up to where the one before it begins.
    const auto back_to = [&](Ticks time, IdleCause cause) {
      const Ticks begin = std::clamp(time, from, until);
      add(idle, cause, until - begin);
      until = begin;
    };
    NodeId data;
    NodeId slot;
    find_last(device, position, data, slot);
    const Ticks data_end = data.valid() ? times_.end[data.value] : from;
    const Ticks slot_end = slot.valid() ? let_go(program_, lanes_, times_, slot, NodeId(position)) : from;
    // What it waits for has come, and the device is still changing; or sends, or so it was measured.
    back_to(std::max({data_end, slot_end, until - setup(position)}), IdleCause::Setup);
    back_to(std::max(data_end, slot_end), IdleCause::Message);
    back_to(held_back_.since(from, position), IdleCause::Memory);
    if (slot_end > data_end) back_to(data_end, IdleCause::Memory);
    if (!data.valid()) return;
    std::uint32_t maker = data.value;
    const Ticks start = times_.start[data.value];
    if (program_.is_message(data)) {
      const std::uint32_t number = program_.message_of(data).value;
      maker = program_.message(data).producer;
      Ticks ready = 0;
      for (NodeId before : program_.waits[data.value]) ready = std::max(ready, times_.end[before.value]);
      if (!times_.came.empty()) back_to(times_.came[number], IdleCause::Memory);
      back_to(times_.longer.empty() ? start : start + times_.longer[number], IdleCause::Message);
      back_to(times_.asked.empty() ? start : times_.asked[number], IdleCause::Link);
      back_to(ready, IdleCause::Queue);
      back_to(times_.end[maker], IdleCause::Memory);
    } else {
      back_to(start, IdleCause::Message);
    }
    back_to(from, draining ? IdleCause::Draining : is_forward(maker) ? IdleCause::Forward : IdleCause::Gradient);
  }

  /// Ticks, the last one perhaps in part.
  Ticks setup(std::uint32_t position) const {
    const std::uint32_t before = lanes_.previous(position);
    if (setups_.empty() || before == Lanes::kNone) return 0;
    const std::vector<OpId>& entries = program_.table.entries;
    const Rational cost = setups_.of(program_.table.ops, entries[before], entries[position]);
    return static_cast<Ticks>((Int128(cost.numerator()) * times_.ticks_per_unit + cost.denominator() - 1) / cost.denominator());
  }

  const SetupCosts<Rational>& setups_;
  const Program& program_;
  const Timeline& times_;
  const Lanes lanes_;
  const std::vector<std::uint32_t> block_of_;
  std::vector<bool> forward_;
  HeldBack held_back_;
};

}  // namespace

IdVector<DeviceId, Idle> attribute_idle(const Schedule& schedule, const Program& program, const Timeline& timeline,
                                         Ticks makespan) {
  Attribution attribution(schedule, program, timeline);
  IdVector<DeviceId, Idle> result;
  for (std::uint32_t d = 0; d < program.table.devices(); ++d) result.push_back(attribution.of(DeviceId(d), makespan));
  return result;
}

}  // namespace stave
