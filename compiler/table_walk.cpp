#include "compiler/table_walk.h"

namespace stave {

std::optional<RunOrder> run_order(const Table& table, const Lanes& lanes, const TableNeeds& needs) {
  TableWalk walk(table, lanes, needs);
  RunOrder order;
  order.reserve(table.size());
  if (!walk.run([&](std::span<const std::uint32_t> block) { order.push_back(block[0]); })) return std::nullopt;
  return order;
}

}  // namespace stave
