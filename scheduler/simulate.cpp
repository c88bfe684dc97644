#include "scheduler/simulate.h"

#include <algorithm>

#include "core/check.h"
#include "core/lanes.h"

namespace stave {

Timeline simulate(const Program& program, const Costs& costs) {
  STAVE_CHECK(program.order.size() == program.nodes(), "a program without an order has no price");
  const Table& table = program.table;
  Timeline times;
  times.ticks_per_unit = costs.ticks_per_unit;
  times.unit = costs.unit;
  times.start.resize(program.nodes());
  times.end.resize(program.nodes());
  const Lanes lanes(table);
  const std::vector<std::uint32_t> block_of = blocks_of(table);
  std::vector<bool> block_done(table.blocks.size(), false);
  std::vector<Ticks> last_start(program.edges.size(), 0);

  const auto ready = [&](std::uint32_t node) {
    Ticks time = 0;
    for (NodeId before : program.waits[node]) time = std::max(time, times.end[before.value]);
    return time;
  };
  const auto compute = [&](std::span<const std::uint32_t> block) {
    Ticks start = 0;
    for (const std::uint32_t position : block) {
      start = std::max(start, ready(position));
      // The first of a pair does not end before the other starts.
      if (const std::uint32_t before = lanes.previous(position); before != Lanes::kNone && before != block[0])
        start = std::max(start, times.end[before] + costs.setup(table, before, position));
    }
    const Ticks end = start + costs.of_block(table, block);
    for (const std::uint32_t position : block) {
      times.start[position] = start;
      times.end[position] = end;
    }
  };
  for (NodeId node : program.order) {
    if (program.is_message(node)) {
      const Message& message = program.message(node);
      Ticks& previous = last_start[message.edge.value];
      times.start[node.value] = previous = std::max(ready(node.value), previous);
      times.end[node.value] = previous + costs.of_message(program, message);
    } else if (block_of.empty() || block_of[node.value] == UINT32_MAX) {
      compute(std::span(&node.value, 1));
    } else if (!block_done[block_of[node.value]]) {
      // The first of a block comes after all that any of it waits for.
      block_done[block_of[node.value]] = true;
      compute(table.blocks[block_of[node.value]]);
    }
  }
  return times;
}

}  // namespace stave
