// Units: the ops that the blocks of a schedule order, with what each waits for and who waits for it.
// A fused op is one unit. This is the fixed part of the greedy scheduler; what changes is in upper.h and fills.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/schedule.h"
#include "core/ids.h"
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
  std::uint16_t device = 0;
  std::uint16_t block = 0;
  std::uint16_t kind = 0;
  bool fill = false;
};

class Units {
 public:
  /// None if some op stands twice, or one that must run nowhere: then there is nothing to order, and verify says why.
  static std::optional<Units> make(const Schedule& schedule, const Costs& costs);

  const Schedule& schedule() const { return *schedule_; }
  std::uint32_t count() const { return count_; }
  bool has_fills() const { return has_fills_; }

  /// Needs of a unit that others satisfy. Shape: one an op number; 0 for ops that are no unit.
  const std::vector<std::uint32_t>& needs() const { return needs_; }
  /// Who waits for the end of `unit`; one entry a need.
  template <class Visit>
  void for_each_successor(OpId unit, Visit&& visit) const {
    const OpKind& kind = schedule_->ops.kinds()[KindId(infos_[unit.value].kind)];
    const auto after = [&](std::uint32_t op) {
      for (const Successor& each : successors_[op]) visit(each);
    };
    if (kind.parts.empty()) return after(unit.value);
    for (KindId part : kind.parts) after(schedule_->ops.kinds()[part].first + (unit.value - kind.first));
  }

  /// The unit that runs an op that is not fused; not valid if no block has it.
  OpId unit_of(OpId op) const { return OpId(unit_of_[op.value]); }

  const UnitInfo& info(OpId unit) const { return infos_[unit.value]; }
  DeviceId device(OpId unit) const { return DeviceId(infos_[unit.value].device); }
  Ticks duration(OpId unit) const { return of(costs_->kinds[KindId(infos_[unit.value].kind)], unit); }
  Ticks message(DeviceId from, DeviceId to, std::uint16_t payload) const {
    return from == to ? 0 : costs_->message[payload];
  }

  /// What a unit takes of its device's limits when it starts, and gives back when it ends. Index: 0 activations, 1 memory.
  static constexpr std::size_t kLimits = 2;
  std::int64_t taken(std::size_t limit, OpId unit) const {
    return of(sizes_[limit].taken[KindId(infos_[unit.value].kind)], unit);
  }
  std::int64_t given(std::size_t limit, OpId unit) const {
    return of(sizes_[limit].given[KindId(infos_[unit.value].kind)], unit);
  }
  /// Microbatch of a unit, or Limit::kNobody.
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

  std::int64_t of(const KindTicks& values, OpId unit) const {
    if (values.values.size() == 1) return values.values[0];
    return values.values[values.at(schedule_->ops.name(unit))];
  }

  bool place_units();
  void join();
  void measure();

  const Schedule* schedule_ = nullptr;
  const Costs* costs_ = nullptr;
  std::uint32_t count_ = 0;
  bool has_fills_ = false;
  std::vector<UnitInfo> infos_;
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
