// Units: the ops that the blocks of a schedule order, with what each waits for and who waits for it.
// A fused op is one unit, and so is an overlapped pair, under the name of its first op. Each unit runs on a lane: the
// computing of its device, or a stream beside it. This is the fixed part of the greedy scheduler; what changes is in upper.h and fills.h.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "compiler/code.h"
#include "compiler/schedule.h"
#include "core/ids.h"
#include "core/rows.h"
#include "scheduler/costs.h"
#include "scheduler/order/limits.h"

namespace stave {

/// Someone who waits for a unit.
struct Successor {
  OpId unit;
  std::uint16_t payload = 0;
};

/// What does not change about a unit, in one place of memory.
struct UnitInfo {
  /// Its place in its block, which is its priority.
  std::uint32_t rank = 0;
  /// Limit::kNobody if it has none.
  std::uint32_t microbatch = Limit::kNobody;
  std::uint32_t lane = 0;
  std::uint16_t block = 0;
  std::uint8_t kind = 0;
  bool fill = false;
};

class Units {
 public:
  /// None if some op stands twice, or one that must run nowhere: then there is nothing to order, and verify says why.
  static std::optional<Units> make(const Schedule& schedule, const Costs& costs);

  const Schedule& schedule() const { return *schedule_; }
  /// Those that must run: all but the optional ones of fills.
  std::uint32_t count() const { return count_; }
  bool must_run(OpId unit) const { return !optional(unit) || !infos_[unit.value].fill; }
  bool has_fills() const { return has_fills_; }

  /// Needs of a unit that others satisfy. Shape: one an op number; 0 for ops that are no unit.
  const std::vector<std::uint32_t>& needs() const { return needs_; }
  /// Calls `visit(successor, op)` for each that waits for the end of `unit`: one a need, with the op that it needs.
  template <class Visit>
  void for_each_successor(OpId unit, Visit&& visit) const {
    for_each_op(unit, [&](std::uint32_t op) {
      for (const Successor& each : successors_[op]) visit(each, OpId(op));
    });
  }
  /// The ops that are not fused and that `unit` runs.
  template <class Visit>
  void for_each_op(OpId unit, Visit&& visit) const {
    for_each_part(unit, infos_[unit.value].kind, visit);
    if (const OpId other = partner(unit); other.valid()) for_each_part(other, kind_of(other), visit);
  }

  /// The unit that runs an op that is not fused; not valid if no block has it.
  OpId unit_of(OpId op) const { return OpId(unit_of_[op.value]); }

  const UnitInfo& info(OpId unit) const { return infos_[unit.value]; }
  /// The other op of an overlapped pair; not valid if the unit is none.
  OpId partner(OpId unit) const { return partners_.empty() ? OpId() : partners_[unit.value]; }
  DeviceId device(OpId unit) const { return lanes_[infos_[unit.value].lane].device; }
  Ticks duration(OpId unit) const {
    if (partner(unit).valid()) return costs_->of_pair(unit);
    return of(costs_->kinds[KindId(infos_[unit.value].kind)], unit);
  }

  /// The units that run together with one on other devices, itself among them; none if it runs by itself.
  std::span<const OpId> together(OpId unit) const {
    if (together_of_.empty() || together_of_[unit.value] == OpId::kNone) return {};
    return together_[together_of_[unit.value]];
  }

  bool optional(OpId unit) const { return schedule_->ops.kinds()[KindId(infos_[unit.value].kind)].optional; }

  /// The computing of every device, by its number, then the streams beside them.
  struct Lane {
    DeviceId device;
    /// As in the order of the device; with streams, of each block the ops of this one.
    std::vector<const OrderBlock*> blocks;
  };
  const std::vector<Lane>& lanes() const { return lanes_; }
  /// The lanes of a device. Shape: [device].
  const std::vector<std::uint32_t>& lanes_of(DeviceId device) const { return lanes_of_[device]; }
  /// Of what `op`, on `from`, sends to another device.
  Ticks message(OpId op, DeviceId from, DeviceId to, std::uint16_t payload) const {
    return from == to ? 0 : costs_->message.from(schedule_->ops, op, payload, from.value, to.value);
  }

  /// What its lane takes to change from one unit to the next.
  Ticks setup(OpId before, OpId after) const {
    if (costs_->setups.empty()) return 0;
    const OpId last = partner(before).valid() ? partner(before) : before;
    return costs_->setups.of(schedule_->ops, last, after);
  }
  bool has_setups() const { return !costs_->setups.empty(); }
  Ticks longest_setup() const { return longest_setup_; }

  /// What a unit takes of its device's limits when it starts, and gives back when it ends. Index: 0 activations, 1 memory.
  static constexpr std::size_t kLimits = 2;
  std::int64_t taken(std::size_t limit, OpId unit) const {
    const OpId other = partner(unit);
    return size(sizes_[limit].taken, unit) + (other.valid() ? size(sizes_[limit].taken, other) : 0);
  }
  std::int64_t given(std::size_t limit, OpId unit) const {
    const OpId other = partner(unit);
    return size(sizes_[limit].given, unit) + (other.valid() ? size(sizes_[limit].given, other) : 0);
  }
  /// Calls `visit(microbatch, taken, given)` for a unit, or for each op of a pair.
  template <class Visit>
  void for_each_size(std::size_t limit, OpId unit, Visit&& visit) const {
    visit(microbatch(unit), size(sizes_[limit].taken, unit), size(sizes_[limit].given, unit));
    if (const OpId other = partner(unit); other.valid())
      visit(schedule_->ops.microbatch(other), size(sizes_[limit].taken, other), size(sizes_[limit].given, other));
  }
  /// Microbatch of a unit, or Limit::kNobody; of a pair that of its first op.
  std::uint32_t microbatch(OpId unit) const { return infos_[unit.value].microbatch; }
  /// The limit of a device at its beginning; none if it has none.
  std::optional<Limit> limit(std::size_t which, DeviceId device) const;

  /// What a limit counts in: one activation, or this part of the unit of `memory`.
  Rational measure(std::size_t limit) const { return limit == 0 ? Rational(1) : memory_unit_; }

 private:
  struct Sizes {
    IdVector<KindId, KindTicks> taken;
    IdVector<KindId, KindTicks> given;
  };

  static_assert(kMaxKinds <= 256);
  std::uint8_t kind_of(OpId op) const { return static_cast<std::uint8_t>(schedule_->ops.kind_of(op).value); }
  template <class Visit>
  void for_each_part(OpId op, std::uint32_t kind_number, Visit& visit) const {
    const OpKind& kind = schedule_->ops.kinds()[KindId(kind_number)];
    if (kind.parts.empty()) return visit(op.value);
    for (KindId part : kind.parts) visit(schedule_->ops.kinds()[part].first + (op.value - kind.first));
  }
  std::int64_t size(const IdVector<KindId, KindTicks>& of_kinds, OpId op) const {
    return of(of_kinds[KindId(infos_[op.value].kind)], op);
  }
  std::int64_t of(const KindTicks& values, OpId unit) const {
    if (values.values.size() == 1) return values.values[0];
    return values.values[values.at(schedule_->ops.name(unit))];
  }

  void find_lanes();
  bool place_units();
  void join_replicas();
  void join();
  void measure();
  /// A unit that waits for an op because of where it is written.
  struct Behind {
    std::uint32_t op = 0;
    OpId unit;
  };
  std::vector<Behind> written_behind() const;

  const Schedule* schedule_ = nullptr;
  const Costs* costs_ = nullptr;
  std::uint32_t count_ = 0;
  bool has_fills_ = false;
  Ticks longest_setup_ = 0;
  std::vector<Lane> lanes_;
  IdVector<DeviceId, std::vector<std::uint32_t>> lanes_of_;
  /// The blocks of lanes, where a block has ops of several streams.
  std::deque<OrderBlock> split_;
  /// By op, of pairs alone their second op has kind and nothing else.
  std::vector<UnitInfo> infos_;
  /// By unit; empty without pairs.
  std::vector<OpId> partners_;
  /// By unit, its row of `together_`; empty without reductions.
  std::vector<std::uint32_t> together_of_;
  Rows<OpId> together_;
  /// Unit that runs an op that is not fused, or OpId::kNone.
  std::vector<std::uint32_t> unit_of_;
  std::vector<std::uint32_t> needs_;
  /// Row: op that is not fused.
  Rows<Successor> successors_;
  Sizes sizes_[kLimits];
  /// Sizes of `memory` are whole multiples of it.
  Rational memory_unit_ = 1;
};

}  // namespace stave
