// Plan: what a run needs to know of a Program beyond what it says itself: who follows whom, which op's data each read
// must find, and that the ops are those of a training step. Made once; nothing here changes while a run goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/program.h"
#include "core/result.h"
#include "executor/partition.h"

namespace stave {

/// Most devices a run in one process has, and most lanes of devices: each is a thread.
inline constexpr std::uint32_t kMaxRunDevices = 512;
inline constexpr std::uint32_t kMaxRunLanes = 1024;

/// What a run does at an entry of the table.
enum class Work : std::uint8_t {
  /// Waits for its cost: stages compute nothing for it.
  Wait,
  /// Computes for a slice of a microbatch.
  Train,
  /// Meets the entries of the stage's other replicas, to sum their gradients.
  Reduce,
  /// Updates the weights of the stage's replica on its device.
  Update,
};

struct Plan {
  /// What is trained; empty if nothing is computed.
  Partition model;
  /// Index into Program::payloads of the data that stages hand on, and of weights; 0 if there is none.
  std::uint16_t activation = 0;
  std::uint16_t gradient = 0;
  std::uint16_t weights = 0;
  /// For every triple of the partition the slot of its stash, or none.
  std::vector<std::uint32_t> stash;

  /// For every position its device.
  std::vector<DeviceId> device;
  /// For every node how many ends of other nodes it waits for, and for a message one more: the start of the one before
  /// it on its edge.
  std::vector<std::uint32_t> pending;
  /// For every node those that wait for its end.
  Rows<NodeId> followers;
  /// For every message the ones before and after it on its edge; MessageId() if there is none.
  std::vector<MessageId> previous;
  std::vector<MessageId> next;
  /// For every item of Program::reads the table entry that must have made what is found there; OpId() if the order
  /// makes none before.
  std::vector<OpId> expected;
  /// For every position what is done there.
  std::vector<Work> work;
  /// For every position how many entries from it on run as one on its lane: 2 at the first of an overlapped pair.
  std::vector<std::uint8_t> together;
  /// Positions of the reductions that run as one, on all devices of a stage; and for every position which row it is in,
  /// or none.
  Rows<std::uint32_t> meetings;
  std::vector<std::uint32_t> meeting_of;
  /// Where a stage keeps the version of its weights that an op reads or an update makes, and the one before that; 0
  /// where there is one version. Shape: by position.
  std::vector<std::uint32_t> weights_slot;
  std::vector<std::uint32_t> weights_before;
  /// By stage and replica, where its newest version is at the end of a step.
  std::vector<std::vector<std::uint32_t>> newest_slot;
  /// For every stage whether the table itself has its reductions and its updates; else they end the step.
  std::vector<std::uint8_t> reduces_itself;
  std::vector<std::uint8_t> updates_itself;
  /// Names of the kinds so run, in the order of their declaration.
  std::vector<std::string> declared;
};

/// Checks a program and makes its plan; `computes` says whether stages compute or every op is a wait.
///
/// Errors: a program that contradicts itself; nodes that wait for one another (unless it was lowered unchecked); with
/// `computes`, one that is no training step (see find_partition), gradients that no update uses or that no reduction
/// sums over the replicas of their stage. Cost: O(nodes + waits).
Result<Plan> make_plan(const Program& program, bool computes);

/// "F(2, 3) on device 2", or "activation of F(1, 3) from device 1 to device 2".
std::string describe(const Program& program, NodeId node);

}  // namespace stave
