#include "core/table.h"

#include <algorithm>

namespace stave {

DeviceId Table::device_of(std::uint32_t position) const {
  const auto after = std::upper_bound(first.begin(), first.end(), position);
  return DeviceId(static_cast<std::uint32_t>(after - first.begin() - 1));
}

std::vector<std::uint32_t> positions_of(const Table& table) {
  std::vector<std::uint32_t> result(table.ops.size(), OpId::kNone);
  const auto note = [&](std::uint32_t op, std::uint32_t position) {
    if (result[op] == OpId::kNone) result[op] = position;
  };
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const OpId op = table.entries[position];
    const OpKind& kind = table.ops.kind(op);
    note(op.value, position);
    for (KindId part : kind.parts) note(table.ops.kinds()[part].first + (op.value - kind.first), position);
  }
  return result;
}

std::vector<std::uint32_t> blocks_of(const Table& table) {
  if (table.blocks.size() == 0) return {};
  std::vector<std::uint32_t> result(table.size(), UINT32_MAX);
  for (std::uint32_t b = 0; b < table.blocks.size(); ++b)
    for (std::uint32_t position : table.blocks[b]) result[position] = b;
  return result;
}

}  // namespace stave
