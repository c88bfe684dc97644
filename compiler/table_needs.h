// What an entry of a table waits for, as positions of the same table.
// Joins Schedule::needs, which speak of ops, with a Table, in which fused ops stand for their parts.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/schedule.h"
#include "core/table.h"

namespace stave {

class TableNeeds {
 public:
  TableNeeds(const Schedule& schedule, const Table& table)
      : schedule_(schedule), table_(table), positions_(positions_of(table)) {}

  /// Calls `visit(position, payload)` for each need of the entry at `position` that another entry satisfies. An op that
  /// stands nowhere (an optional one left out) is passed over. An entry may be named more than once.
  template <class Visit>
  void for_each(std::uint32_t position, Visit&& visit) const {
    const OpId op = table_.entries[position];
    const OpKind& kind = table_.ops.kind(op);
    if (kind.parts.empty()) return of_part(op.value, position, visit);
    for (KindId part : kind.parts) of_part(table_.ops.kinds()[part].first + (op.value - kind.first), position, visit);
  }

  /// Position that runs `op`, or OpId::kNone.
  std::uint32_t position(OpId op) const { return positions_[op.value]; }

 private:
  template <class Visit>
  void of_part(std::uint32_t op, std::uint32_t position, Visit& visit) const {
    for (const Dependency& need : schedule_.needs[op]) {
      const std::uint32_t at = positions_[need.op.value];
      if (at != OpId::kNone && at != position) visit(at, need.payload);
    }
  }

  const Schedule& schedule_;
  const Table& table_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace stave
