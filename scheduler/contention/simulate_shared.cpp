#include "scheduler/contention/simulate_shared.h"

#include "core/check.h"
#include "scheduler/contention/ahead.h"
#include "scheduler/contention/sharing.h"

namespace stave {

std::vector<Ticks> lengths_of(const Program& program, const Costs& costs) {
  const Table& table = program.table;
  std::vector<Ticks> result(program.nodes());
  const std::vector<std::uint32_t> block_of = blocks_of(table);
  for (std::uint32_t position = 0; position < table.size(); ++position)
    result[position] = block_of.empty() || block_of[position] == UINT32_MAX
                           ? costs.of(table.ops, table.entries[position])
                           : costs.of_block(table, table.blocks[block_of[position]]);
  for (std::uint32_t n = table.size(); n < program.nodes(); ++n)
    result[n] = costs.of_message(program, program.message(NodeId(n)));
  return result;
}

Timeline simulate_shared(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs,
                         const SimulationRules& rules, const Contention& contention) {
  STAVE_CHECK(program.order.size() == program.nodes(), "a program without an order has no price");
  STAVE_CHECK(lengths.size() == program.nodes(), "the lengths do not fit the program");
  const Sharing sharing = sharing_of(rules, contention);
  if (is_known_ahead(sharing, rules, contention))
    return simulate_ahead(program, lengths, costs, sharing, rules, contention);
  return info(sharing).simulate(program, lengths, costs, rules, contention);
}

}  // namespace stave
