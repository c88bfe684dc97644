#include "scheduler/overlap.h"

#include <algorithm>
#include <vector>

#include "core/lanes.h"

namespace stave {

MessageTime message_time(const Program& program, const Timeline& timeline) {
  MessageTime result;
  for (std::uint32_t n = program.table.size(); n < program.nodes(); ++n)
    result.under_way += timeline.end[n] - timeline.start[n];
  std::vector<Ticks> exposed(program.messages.size(), 0);
  const Lanes lanes(program.table);
  for (std::uint32_t position = 0; position < program.table.size(); ++position) {
    const std::uint32_t previous = lanes.previous(position);
    const Ticks idle_from = previous == Lanes::kNone ? 0 : timeline.end[previous];
    NodeId last;
    for (NodeId before : program.waits[position])
      if (!last.valid() || timeline.end[before.value] > timeline.end[last.value]) last = before;
    if (!last.valid() || !program.is_message(last)) continue;
    const Ticks from = std::max(idle_from, timeline.start[last.value]);
    const Ticks to = std::min(timeline.start[position], timeline.end[last.value]);
    // Lanes that wait for one message go on together, when it ends: who waits longest waits for all.
    Ticks& longest = exposed[program.message_of(last).value];
    longest = std::max(longest, to - from);
  }
  for (Ticks each : exposed) result.exposed += each;
  return result;
}

}  // namespace stave
