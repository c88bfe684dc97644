#include "scheduler/start_times.h"

#include <algorithm>

#include "compiler/table_walk.h"
#include "core/check.h"
#include "core/lanes.h"

namespace stave {

std::optional<Starts> try_start_times(const Table& table, const TableNeeds& needs, const Costs& costs) {
  const Lanes lanes(table);
  TableWalk walk(table, lanes, needs);
  Starts times;
  times.message = costs.message;
  times.start.assign(table.size(), 0);
  times.end.assign(table.size(), 0);
  const bool finishes = walk.run([&](std::span<const std::uint32_t> block) {
    Ticks ready = 0;
    for (const std::uint32_t position : block) {
      const std::uint32_t d = lanes.device_at(position);
      // The first of a pair does not end before the other starts.
      if (const std::uint32_t before = lanes.previous(position); before != Lanes::kNone && before != block[0])
        ready = std::max(ready, times.end[before] + costs.setup(table, before, position));
      if (const std::uint32_t before = lanes.written_after(position); before != Lanes::kNone)
        ready = std::max(ready, times.end[before]);
      for (const TableNeed& need : needs[position]) {
        // It ended long before the entry that stands before this one, and its end is far away in memory.
        if (need.device == d && lanes.plain()) continue;
        Ticks sent = times.end[need.position];
        if (need.device != d) sent += costs.message.of(need.payload, need.device, d);
        ready = std::max(ready, sent);
      }
    }
    const Ticks end = ready + costs.of_block(table, block);
    for (const std::uint32_t position : block) {
      __builtin_prefetch(table.entries.data() + position + 16);
      __builtin_prefetch(times.start.data() + position + 8, 1);
      __builtin_prefetch(times.end.data() + position + 8, 1);
      times.start[position] = ready;
      times.end[position] = end;
    }
  });
  if (!finishes) return std::nullopt;
  return times;
}

Starts start_times(const Schedule& schedule, const Table& table, const Costs& costs) {
  std::optional<Starts> times = try_start_times(table, TableNeeds(schedule, table), costs);
  STAVE_CHECK(times, "start times of a table that cannot finish");
  return std::move(*times);
}

}  // namespace stave
