// The greedy scheduler of docs/language.md, word by word and as slow as it likes: the specification of
// scheduler/order. A fill looks ahead by copying the whole world.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "compiler/schedule.h"
#include "core/table.h"
#include "scheduler/costs.h"

namespace stave::test {

class ReferenceOrder {
 public:
  ReferenceOrder(const Schedule& schedule, const Costs& costs) : schedule_(schedule), costs_(costs) {}

  /// The order of every device, as far as it comes.
  std::vector<std::vector<OpId>> run() {
    World world(schedule_);
    while (advance(world, true)) {
    }
    return world.rows;
  }

 private:
  struct Running {
    OpId op;
    Ticks end = 0;
  };
  struct World {
    explicit World(const Schedule& schedule)
        : end(schedule.ops.size(), -1), started(schedule.ops.size(), false), running(schedule.devices),
          rows(schedule.devices), above_started(schedule.devices, -1) {}
    Ticks now = 0;
    /// When an op ended (parts of fused ones too), or -1.
    std::vector<Ticks> end;
    std::vector<bool> started;
    std::vector<std::optional<Running>> running;
    std::vector<std::vector<OpId>> rows;
    /// When a list or an `any` of a device last started an op.
    std::vector<Ticks> above_started;
  };

  /// One moment, then the clock to the next one; false when nothing is left to wait for.
  bool advance(World& world, bool with_fills) const {
    do {
      end_what_ends(world);
      serve(world);
    } while (something_ends_now(world) || (with_fills && fill(world)));
    return to_next_moment(world);
  }

  bool something_ends_now(const World& world) const {
    for (const std::optional<Running>& each : world.running)
      if (each && each->end <= world.now) return true;
    return false;
  }

  void end_what_ends(World& world) const {
    for (std::optional<Running>& each : world.running) {
      if (!each || each->end > world.now) continue;
      for (OpId part : schedule_.ops.parts(each->op)) world.end[part.value] = each->end;
      world.end[each->op.value] = each->end;
      each.reset();
    }
  }

  void serve(World& world) const {
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t d = 0; d < schedule_.devices && !again; ++d) {
        if (world.running[d]) continue;
        if (const std::optional<OpId> op = choose(world, d)) {
          world.above_started[d] = world.now;
          start(world, d, *op);
          again = true;
          end_what_ends(world);
        }
      }
    }
  }

  std::optional<OpId> choose(const World& world, std::uint32_t d) const {
    for (const OrderBlock& block : schedule_.orders[DeviceId(d)].blocks) {
      if (block.kind == OrderKind::Fill) continue;
      for (OpId op : block.ops) {
        if (world.started[op.value]) continue;
        const bool room = block.kind == OrderKind::List ? fits(world, d, op) : fits_with_room(world, d, op);
        if (ready(world, op) && room) return op;
        if (block.kind == OrderKind::List) break;
      }
    }
    return std::nullopt;
  }

  bool fill(World& world) const {
    for (std::uint32_t d = 0; d < schedule_.devices; ++d) {
      if (world.running[d]) continue;
      for (const OrderBlock& block : schedule_.orders[DeviceId(d)].blocks) {
        if (block.kind != OrderKind::Fill) continue;
        for (OpId op : block.ops) {
          if (world.started[op.value] || !ready(world, op) || !fits_with_room(world, d, op)) continue;
          if (!idle_until(world, d, world.now + costs_.of(schedule_.ops, op))) continue;
          start(world, d, op);
          return true;
        }
      }
    }
    return false;
  }

  /// Were nothing more filled anywhere, nothing of device d would start from now until `until`.
  bool idle_until(const World& world, std::uint32_t d, Ticks until) const {
    World ahead = world;
    ahead.above_started[d] = -1;
    while (to_next_moment(ahead) && ahead.now < until) {
      do {
        end_what_ends(ahead);
        serve(ahead);
      } while (something_ends_now(ahead));
      if (ahead.above_started[d] >= 0) return false;
    }
    return true;
  }

  void start(World& world, std::uint32_t d, OpId op) const {
    world.started[op.value] = true;
    world.running[d] = Running{op, world.now + costs_.of(schedule_.ops, op)};
    world.rows[d].push_back(op);
  }

  bool to_next_moment(World& world) const {
    std::optional<Ticks> next;
    const auto consider = [&](Ticks time) {
      if (time > world.now && (!next || time < *next)) next = time;
    };
    for (const std::optional<Running>& each : world.running)
      if (each) consider(each->end);
    for (const DeviceOrder& order : schedule_.orders)
      for (const OrderBlock& block : order.blocks)
        for (OpId op : block.ops)
          if (!world.started[op.value])
            if (const std::optional<Ticks> time = ready_time(world, op)) consider(*time);
    if (!next) return false;
    world.now = *next;
    return true;
  }

  std::optional<Ticks> ready_time(const World& world, OpId op) const {
    Ticks time = 0;
    const std::vector<OpId> parts = schedule_.ops.parts(op);
    for (OpId part : parts)
      for (const Dependency& need : schedule_.needs[part.value]) {
        if (std::find(parts.begin(), parts.end(), need.op) != parts.end()) continue;
        if (world.end[need.op.value] < 0) return std::nullopt;
        const std::uint16_t from = schedule_.device_of[need.op.value];
        const std::uint16_t to = schedule_.device_of[op.value];
        time = std::max(time, world.end[need.op.value] + (from == to ? 0 : costs_.message.from(schedule_.ops, need.op, need.payload, from, to)));
      }
    return time;
  }
  bool ready(const World& world, OpId op) const {
    const std::optional<Ticks> time = ready_time(world, op);
    return time && *time <= world.now;
  }

  /// Activations that an op takes when it starts, and gives back when it ends.
  std::int64_t taken(OpId op) const { return info(schedule_.ops.kind(op).operation).takes_activation ? 1 : 0; }
  std::int64_t given(OpId op) const { return info(schedule_.ops.kind(op).operation).gives_activation ? 1 : 0; }

  std::int64_t held(const World& world, std::uint32_t d, std::uint32_t from_microbatch) const {
    std::int64_t sum = 0;
    for (OpId op : world.rows[d]) {
      if (schedule_.ops.microbatch(op) < from_microbatch) continue;
      sum += taken(op);
      if (world.end[op.value] >= 0) sum -= given(op);
    }
    return sum;
  }
  bool fits(const World& world, std::uint32_t d, OpId op) const {
    const std::optional<Rational>& limit = schedule_.orders[DeviceId(d)].activation_limit;
    return !limit || taken(op) == 0 || Rational(held(world, d, 0) + taken(op)) <= *limit;
  }
  bool fits_with_room(const World& world, std::uint32_t d, OpId op) const {
    const std::optional<Rational>& limit = schedule_.orders[DeviceId(d)].activation_limit;
    if (!limit || taken(op) == 0) return true;
    if (!fits(world, d, op)) return false;
    const std::uint32_t own = schedule_.ops.microbatch(op);
    bool oldest = true;
    for (std::uint32_t m = 0; m < own; ++m) {
      std::int64_t rest = 0;
      for (const OrderBlock& block : schedule_.orders[DeviceId(d)].blocks)
        for (OpId other : block.ops)
          if (!world.started[other.value] && schedule_.ops.microbatch(other) == m) rest += taken(other);
      if (rest == 0) continue;
      const std::int64_t others = held(world, d, oldest ? 0 : m) + taken(op);
      if (Rational(others + rest) > *limit) return false;
      oldest = false;
    }
    return true;
  }

  const Schedule& schedule_;
  const Costs& costs_;
};

}  // namespace stave::test
