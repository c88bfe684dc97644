#include "scheduler/simulate.h"

#include <algorithm>

#include "core/check.h"

namespace stave {

Timeline simulate(const Program& program, const Costs& costs) {
  STAVE_CHECK(program.order.size() == program.nodes(), "a program without an order has no price");
  const Table& table = program.table;
  Timeline times;
  times.ticks_per_unit = costs.ticks_per_unit;
  times.start.resize(program.nodes());
  times.end.resize(program.nodes());
  std::vector<bool> first_of_device(table.size(), false);
  for (std::uint32_t d = 0; d < table.devices(); ++d)
    if (table.first[d] < table.first[d + 1]) first_of_device[table.first[d]] = true;
  std::vector<Ticks> last_start(program.edges.size(), 0);

  for (NodeId node : program.order) {
    Ticks start = 0;
    for (NodeId before : program.waits[node.value]) start = std::max(start, times.end[before.value]);
    Ticks duration = 0;
    if (program.is_message(node)) {
      const Message& message = program.message(node);
      Ticks& previous = last_start[message.edge.value];
      start = previous = std::max(start, previous);
      duration = costs.message[message.payload];
    } else {
      if (!first_of_device[node.value]) start = std::max(start, times.end[node.value - 1]);
      duration = costs.of(table.ops, table.entries[node.value]);
    }
    times.start[node.value] = start;
    times.end[node.value] = start + duration;
  }
  return times;
}

}  // namespace stave
