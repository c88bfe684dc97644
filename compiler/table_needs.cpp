#include "compiler/table_needs.h"

#include <algorithm>
#include <vector>

namespace stave {

namespace {

/// A kind whose ops run those of its parts. There are one or two, so that a search is as good as a map.
struct Fused {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::vector<std::uint32_t> part_firsts;
};

std::vector<Fused> fused_kinds(const OpSet& ops) {
  std::vector<Fused> result;
  for (const OpKind& kind : ops.kinds()) {
    if (kind.parts.empty()) continue;
    Fused fused{kind.first, kind.count, {}};
    for (KindId part : kind.parts) fused.part_firsts.push_back(ops.kinds()[part].first);
    result.push_back(std::move(fused));
  }
  return result;
}

}  // namespace

TableNeeds::TableNeeds(const Schedule& schedule, const Table& table) {
  const std::vector<std::uint32_t> positions = positions_of(table);
  const std::vector<Fused> fused = fused_kinds(table.ops);
  rows_.first.reserve(table.size() + std::size_t(1));
  // More than there will be; what is not filled costs no memory.
  rows_.items.reserve(schedule.needs.items.size());
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const std::uint32_t op = table.entries[position].value;
    const auto add_needs_of = [&](std::uint32_t part) {
      for (const Dependency& need : schedule.needs[part]) {
        const std::uint32_t at = positions[need.op.value];
        if (at != OpId::kNone && at != position) rows_.items.push_back({at, schedule.device_of[need.op.value], need.payload});
      }
    };
    const auto whole = std::find_if(fused.begin(), fused.end(),
                                    [&](const Fused& each) { return op - each.first < each.count; });
    if (whole == fused.end())
      add_needs_of(op);
    else
      for (const std::uint32_t first : whole->part_firsts) add_needs_of(first + (op - whole->first));
    rows_.end_row();
  }
}

}  // namespace stave
