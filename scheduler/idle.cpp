#include "scheduler/idle.h"

#include <algorithm>

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
      : program_(program), times_(times), forward_(forward_kinds(program.table.ops)) {}

  Idle of(DeviceId device, Ticks makespan) const {
    const std::uint32_t begin = program_.table.first[device.value];
    const std::uint32_t end = program_.table.first[device.value + 1];
    Idle idle = {};
    if (begin == end) {
      add(idle, IdleCause::Imbalance, makespan);
      return idle;
    }
    std::uint32_t last_forward = begin;
    for (std::uint32_t position = begin; position < end; ++position)
      if (is_forward(position)) last_forward = position;
    add(idle, IdleCause::Filling, times_.start[begin]);
    for (std::uint32_t position = begin + 1; position < end; ++position)
      wait(idle, position, times_.end[position - 1], position > last_forward);
    add(idle, IdleCause::Imbalance, makespan - times_.end[end - 1]);
    return idle;
  }

 private:
  static void add(Idle& idle, IdleCause cause, Ticks time) { idle[static_cast<std::size_t>(cause)] += time; }

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
