// LanePlan: what the host thread of one rank enqueues, item by item, and where: lanes, which are in-order queues, and the
// events by which an item waits for one of another lane. Made once; nothing is looked up when it is gone through.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"
#include "core/result.h"
#include "executor/plan.h"

namespace stave {

enum class Action : std::uint8_t {
  /// Runs the op of the table.
  Op,
  /// The same, and then sums the gradients of its stage's replicas.
  Sum,
  /// A message from a device of this rank to another of it.
  Copy,
  Send,
  Receive,
};

struct LaneItem {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  NodeId node;
  Action action = Action::Op;
  std::uint32_t lane = 0;
  /// Its row of LanePlan::waits.
  std::uint32_t first_wait = 0;
  std::uint32_t end_wait = 0;
  /// Recorded behind it, if an item of another lane waits for it.
  std::uint32_t event = kNone;
};

struct LanePlan {
  struct Lane {
    /// Whose computing it is, or what a stream of the schedule stands on; not valid for messages.
    DeviceId device;
    bool computes = false;
  };
  std::vector<Lane> lanes;
  std::vector<LaneItem> items;
  /// Events, by item.
  std::vector<std::uint32_t> waits;
  std::uint32_t events = 0;
  /// For every node the item whose end is its own; kNone of those of other ranks. A message's own item is its last half
  /// here; of sums that run as one, the last.
  std::vector<std::uint32_t> item_of;
};

struct LaneRules {
  /// The device whose rank this is; all devices are here if it is not valid.
  DeviceId rank;
  /// All messages on one lane, instead of one for every directed edge.
  bool serial = false;
};

/// The items of a rank in the one global order of the program, sums that run as one next to each other.
///
/// Errors: a program that was lowered unchecked; one whose issue order contradicts its waits. Cost: O((nodes + waits) log
/// nodes + lanes^2).
Result<LanePlan> plan_lanes(const Program& program, const Plan& plan, const LaneRules& rules);

}  // namespace stave
