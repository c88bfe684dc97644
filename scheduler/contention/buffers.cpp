#include "scheduler/contention/buffers.h"

namespace stave {

bool is_at_source(const Program& program, const Lanes& lanes, const Message& message, NodeId follower) {
  const Edge& edge = program.edges[message.edge.value];
  if (!program.is_message(follower)) return DeviceId(lanes.device_at(follower.value)) == edge.source;
  const Edge& theirs = program.edges[program.message(follower).edge.value];
  // One that leaves from where this one arrives may carry its data on.
  return theirs.target == edge.source && theirs.source != edge.target;
}

Ticks let_go(const Program& program, const Lanes& lanes, const Timeline& times, NodeId before, NodeId follower) {
  const bool has_left = !times.came.empty() && program.is_message(before) &&
                        is_at_source(program, lanes, program.message(before), follower);
  return has_left ? times.came[program.message_of(before).value] : times.end[before.value];
}

}  // namespace stave
