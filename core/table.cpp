#include "core/table.h"

#include <algorithm>

namespace stave {

DeviceId Table::device_of(std::uint32_t position) const {
  const auto after = std::upper_bound(first.begin(), first.end(), position);
  return DeviceId(static_cast<std::uint32_t>(after - first.begin() - 1));
}

std::vector<std::uint32_t> positions_of(const Table& table) {
  std::vector<std::uint32_t> result(table.ops.size(), OpId::kNone);
  const auto note = [&](std::uint32_t op, std::uint32_t position) { result[op] = std::min(result[op], position); };
  for (std::uint32_t position = 0; position < table.size(); ++position) note(table.entries[position].value, position);
  for (const OpKind& whole : table.ops.kinds())
    for (const KindId part : whole.parts)
      for (std::uint32_t i = 0; i < whole.count; ++i) note(table.ops.kinds()[part].first + i, result[whole.first + i]);
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
