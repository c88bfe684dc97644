// Critical path: the chain of ops and messages that makes a timeline as long as it is, what it is made of, and how much
// later each other node could start without making it longer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/program.h"
#include "core/ticks.h"
#include "core/timeline.h"
#include "scheduler/contention/turns.h"
#include "scheduler/costs.h"

namespace stave {

/// Part of the critical path.
struct Blame {
  Ticks time = 0;
  /// Ops, or messages.
  std::uint32_t count = 0;
};

struct KindBlame : Blame {
  /// "F", "F with B", "message", or "setup": what passes between two ops of a lane before the second may start.
  std::string name;
};

struct StageBlame : Blame {
  /// Id::kNone: of ops without a stage.
  std::uint32_t stage = 0;
};

struct LinkBlame : Blame {
  DeviceId source;
  DeviceId target;
};

/// Of what has no part in the path there is no entry.
struct CriticalPath {
  /// From the start to the end of the makespan, each starting when the one before it ends; of a message that starts with
  /// the one before it on its edge, that one is left out. A pair stands as its op that is waited for. A message that
  /// had come and waited for its slot takes no time: the path goes to what was in the slot. Of one that held a link for
  /// another the path has what it did until it let go.
  std::vector<NodeId> nodes;
  /// Time in which the path goes through no node: 0 in a simulated timeline, but where a message that takes a shared link for
  /// no time kept others waiting.
  Ticks waiting = 0;
  /// In the order of the kinds, then pairs, messages, and setups. With `waiting` their times sum to the makespan.
  std::vector<KindBlame> kinds;
  /// By rising number, setups with the stage of the op that starts then; with `links` and `waiting` their times sum to the makespan.
  std::vector<StageBlame> stages;
  /// By edge.
  std::vector<LinkBlame> links;
};

/// Optional ops end no path, but may be part of one. Of several that end at the same time the path takes the op before
/// on the same lane, else the wait of the lowest number. `timeline` must be complete; of `costs` only setups matter. Cost: O(nodes + waits).
/// `turns` are those of the timeline.
CriticalPath critical_path(const Program& program, const Timeline& timeline, const Costs& costs, const Turns& turns = {});

/// How much later each node could start, others moving behind it, and the makespan would stay; for an optional op
/// that no other waits for, the end of the last op. Shape: one a node. Unit: ticks.
/// Where messages contend, turns stay as they were, and each node as long as it was. Of a simulated timeline, without
/// buffers. Cost: O(nodes + waits), with turns also O(nodes log nodes).
std::vector<Ticks> slack(const Program& program, const Timeline& timeline, const Costs& costs, const Turns& turns = {});

}  // namespace stave
