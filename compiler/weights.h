// Which version of a stage's weights each op of a table reads, where optimizer steps stand between its ops.
// Versions of a stage are counted from 0, those at the start; its v-th optimizer step in the table makes version v.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "compiler/table_needs.h"
#include "core/table.h"

namespace stave {

/// The name of the messages that carry weights.
inline constexpr std::string_view kWeightsPayload = "weights";

struct WeightVersions {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// By position: the version that an optimizer step makes; kNone of other ops.
  std::vector<std::uint32_t> makes;
  /// By position: the version that a forward reads, or what works on its activations; kNone of other ops.
  std::vector<std::uint32_t> reads;
  /// By position: the weights it reads came with a message from another device.
  std::vector<bool> received;
};

/// A forward reads the weights that it `receives`, from the optimizer step that made them or from another forward that
/// read them; one that receives none where others of its kind do, those at the start; and where none does, the newest of
/// its device. What works on the activations of a forward reads what it read.
/// Empty arrays if the table has no optimizer step and no weights are received. `table` must be complete; what an op
/// reads that can never run is of no account.
/// Cost: O(entries + needs).
WeightVersions weight_versions(const Schedule& schedule, const Table& table, const TableNeeds& needs);

/// Most updates of each stage between the weights a microbatch read and the update that uses its gradient; 0 without
/// updates. Shape: [stage].
std::vector<std::uint32_t> staleness(const Schedule& schedule, const Table& table, const WeightVersions& versions);

/// True if every device still keeps the versions that its ops read, where `limit versions` says how many it keeps, and
/// every stage with replicas whose optimizer steps is reduced before. Otherwise `sink` says where not.
bool verify_weights(const Schedule& schedule, const Table& table, const WeightVersions& versions, Diagnostics& sink);

}  // namespace stave
