#include "scheduler/order/blocks.h"

#include <algorithm>
#include <map>

namespace stave {

namespace {

void find_pairs(const Schedule& schedule, Table& table) {
  const std::vector<PairCost>& pairs = schedule.costs.pairs;
  if (pairs.empty()) return;
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const auto found = std::lower_bound(pairs.begin(), pairs.end(), table.entries[position],
                                        [](const PairCost& pair, OpId op) { return pair.first < op; });
    if (found == pairs.end() || found->first != table.entries[position]) continue;
    // What is left of an order that got stuck may be torn apart.
    if (position + 1 == table.size() || table.entries[position + 1] != found->second) continue;
    table.blocks.items.push_back(position);
    table.blocks.items.push_back(++position);
    table.blocks.end_row();
  }
}

/// Number of the op of a kind but for its replica, which is the last index.
std::uint32_t without_replica(const OpKind& kind, OpId op) {
  return (op.value - kind.first) / kind.extent(IndexRole::Replica);
}

void find_reductions(Table& table) {
  const auto reduces = [](const OpKind& kind) {
    return kind.stream == kReduceStream && kind.extent(IndexRole::Replica) > 1;
  };
  const auto& kinds = table.ops.kinds();
  if (std::none_of(kinds.begin(), kinds.end(), reduces)) return;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> together;
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const KindId kind = table.ops.kind_of(table.entries[position]);
    if (reduces(kinds[kind]))
      together[{kind.value, without_replica(kinds[kind], table.entries[position])}].push_back(position);
  }
  for (const auto& [unused, positions] : together) {
    if (positions.size() < 2) continue;
    table.blocks.items.insert(table.blocks.items.end(), positions.begin(), positions.end());
    table.blocks.end_row();
  }
}

}  // namespace

void find_blocks(const Schedule& schedule, Table& table) {
  find_pairs(schedule, table);
  find_reductions(table);
}

}  // namespace stave
