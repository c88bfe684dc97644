#include "scheduler/start_times.h"

#include <algorithm>

#include "compiler/table_needs.h"
#include "core/check.h"

namespace stave {

Starts start_times(const Schedule& schedule, const Table& table, const Costs& costs) {
  constexpr Ticks kNotYet = -1;
  constexpr std::uint32_t kNobody = UINT32_MAX;
  const TableNeeds needs(schedule, table);
  Starts times;
  times.message = costs.message;
  times.start.assign(table.size(), 0);
  times.end.assign(table.size(), kNotYet);

  // A device walks its row until an entry's need has not ended; then it waits in the list of that need's position.
  const std::uint32_t devices = table.devices();
  std::vector<std::uint32_t> next(table.first.begin(), table.first.end() - 1);
  std::vector<Ticks> clock(devices, 0);
  std::vector<std::uint32_t> first_waiter(table.size(), kNobody);
  std::vector<std::uint32_t> next_waiter(devices, kNobody);
  std::vector<std::uint32_t> runnable;
  for (std::uint32_t d = devices; d-- > 0;) runnable.push_back(d);

  std::uint32_t done = 0;
  while (!runnable.empty()) {
    const std::uint32_t d = runnable.back();
    runnable.pop_back();
    for (; next[d] < table.first[d + 1]; ++next[d]) {
      const std::uint32_t position = next[d];
      Ticks ready = clock[d];
      std::uint32_t missing = kNobody;
      needs.for_each(position, [&](std::uint32_t at, std::uint16_t payload) {
        if (times.end[at] == kNotYet) {
          missing = at;
          return;
        }
        const bool here = at >= table.first[d] && at < table.first[d + 1];
        ready = std::max(ready, times.end[at] + (here ? 0 : costs.message[payload]));
      });
      if (missing != kNobody) {
        next_waiter[d] = first_waiter[missing];
        first_waiter[missing] = d;
        break;
      }
      times.start[position] = ready;
      clock[d] = times.end[position] = ready + costs.of(table.ops, table.entries[position]);
      ++done;
      for (std::uint32_t w = first_waiter[position]; w != kNobody; w = next_waiter[w]) runnable.push_back(w);
    }
  }
  STAVE_CHECK(done == table.size(), "start times of a table that cannot finish");
  return times;
}

}  // namespace stave
