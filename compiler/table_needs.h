// What the entries of a table wait for, as positions of the same table.
// Joins Schedule::needs, which speak of ops, with a Table, in which fused ops stand for their parts.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/schedule.h"
#include "core/fetch.h"
#include "core/rows.h"
#include "core/table.h"

namespace stave {

/// One thing an entry waits for. All that a walk in time order asks of it stands here, side by side.
struct TableNeed {
  std::uint32_t position = 0;
  /// The device of `position`.
  std::uint16_t device = 0;
  /// Index into Schedule::payloads.
  std::uint16_t payload = 0;
};

class TableNeeds {
 public:
  /// Cost: O(entries + needs), about 15 ns an entry; four bytes an entry and eight a need.
  TableNeeds(const Schedule& schedule, const Table& table);

  /// The needs of the entry at `position` that other entries satisfy. An op that stands nowhere (an optional one left out)
  /// is passed over. An entry may be named more than once.
  std::span<const TableNeed> operator[](std::uint32_t position) const { return rows_[position]; }
  /// Of all entries. Shape: a row a position.
  const Rows<TableNeed>& rows() const { return rows_; }

  /// For a walk that comes to an entry and will go on behind it, after entries of other devices: too many places for the
  /// processor to see where each goes on.
  void fetch_behind(std::uint32_t position) const {
    fetch(rows_.first, position + std::size_t(16));
    fetch(rows_.items, rows_.first[position] + std::size_t(16));
  }

  /// Calls `visit(position, payload)` for each.
  template <class Visit>
  void for_each(std::uint32_t position, Visit&& visit) const {
    for (const TableNeed& need : rows_[position]) visit(need.position, need.payload);
  }

 private:
  Rows<TableNeed> rows_;
};

}  // namespace stave
