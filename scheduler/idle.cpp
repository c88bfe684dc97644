#include "scheduler/idle.h"

#include <algorithm>

#include "core/lanes.h"

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
  Attribution(const Program& program, const Timeline& times)
      : program_(program), times_(times), lanes_(program.table), forward_(forward_kinds(program.table.ops)) {}

  /// Of its computing: what runs beside it does not keep it from idling.
  Idle of(DeviceId device, Ticks makespan) const {
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
    add(idle, IdleCause::Filling, times_.start[first]);
    std::uint32_t before = first;
    for (std::uint32_t at = lanes_.next(first); before != last; at = lanes_.next(at)) {
      if (!counts(at)) continue;
      wait(idle, at, times_.end[before], at > last_forward);
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

  void wait(Idle& idle, std::uint32_t position, Ticks from, bool draining) const {
    const Ticks until = times_.start[position];
    if (from >= until) return;
    NodeId last;
    for (NodeId before : program_.waits[position])
      if (!last.valid() || times_.end[before.value] > times_.end[last.value]) last = before;
    if (!last.valid()) return add(idle, IdleCause::Message, until - from);
    const Ticks under_way = std::clamp(times_.start[last.value], from, until);
    add(idle, IdleCause::Message, until - under_way);
    const bool forward = is_forward(program_.is_message(last) ? program_.message(last).producer : last.value);
    add(idle, draining ? IdleCause::Draining : forward ? IdleCause::Forward : IdleCause::Gradient, under_way - from);
  }

  const Program& program_;
  const Timeline& times_;
  const Lanes lanes_;
  std::vector<bool> forward_;
};

}  // namespace

IdVector<DeviceId, Idle> attribute_idle(const Program& program, const Timeline& timeline, Ticks makespan) {
  const Attribution attribution(program, timeline);
  IdVector<DeviceId, Idle> result;
  for (std::uint32_t d = 0; d < program.table.devices(); ++d) result.push_back(attribution.of(DeviceId(d), makespan));
  return result;
}

}  // namespace stave
