// Partition: how a schedule cuts a model into stages, and a training step into microbatches and slices, which way each
// microbatch takes through the stages, and where they run. Read from a Program itself; what is computed is for others.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/program.h"
#include "core/result.h"
#include "core/sizes.h"

namespace stave {

struct Plan;

struct Partition {
  std::uint32_t stages = 0;
  std::uint32_t microbatches = 0;
  /// Most slices of a microbatch; 1 if they are not cut. And how many each has, where they differ: empty if all have
  /// the most.
  std::uint32_t slices = 1;
  std::vector<std::uint32_t> own_slices;
  Sizes sizes;

  /// The different ways through the stages that there are, each without a stage twice.
  std::vector<std::vector<StageId>> routes;
  /// Shape: microbatches. Index into `routes`.
  std::vector<std::uint32_t> route_of;
  /// Devices that run a stage, by rising number: it has a replica on each. Empty if no microbatch visits the stage.
  IdVector<StageId, std::vector<DeviceId>> devices;

  /// Shape: devices of the schedule. Which of them this process has, and so makes the stages of; empty if all.
  std::vector<std::uint8_t> here;

  /// For every triple whether its forward keeps the input alone and an op R makes the rest again; empty if none does.
  std::vector<std::uint8_t> recomputed;

  /// Updates of each stage that stand in the table; all 0, and the rest empty, if every step ends with one.
  IdVector<StageId, std::uint32_t> updates;
  /// For every triple the version of weights that its ops read, 0 that at the start of the step, v that of the v-th
  /// update; and which update uses its gradient, counted from 1, or 0 if it is the one that ends the step.
  std::vector<std::uint32_t> reads_version;
  std::vector<std::uint32_t> used_by;
  /// Most versions of a stage that one of its devices keeps at once.
  IdVector<StageId, std::uint32_t> kept;

  std::uint32_t kept_of(StageId s) const { return kept.empty() ? 1 : kept[s]; }
  /// Replicas of a stage that this process has. Cost: O(replicas).
  std::size_t replicas_here(StageId s) const;
  bool is_here(DeviceId d) const { return here.empty() || here[d.value] != 0; }
  bool has_updates() const { return !used_by.empty(); }

  std::uint32_t slices_of(std::uint32_t microbatch) const {
    return own_slices.empty() ? slices : own_slices[microbatch];
  }
  const std::vector<StageId>& route(std::uint32_t microbatch) const { return routes[route_of[microbatch]]; }
  bool begins(StageId s, std::uint32_t microbatch) const { return route(microbatch).front() == s; }
  bool ends(StageId s, std::uint32_t microbatch) const { return route(microbatch).back() == s; }
  /// Whether some route begins or ends at a stage: there the model has its embedding, or its head. Cost: O(routes).
  bool begins_some(StageId s) const;
  bool ends_some(StageId s) const;

  /// Number of a (stage, microbatch, slice) triple, and how many there are, slices that a microbatch lacks counted.
  std::size_t triple(std::uint32_t s, std::uint32_t m, std::uint32_t q) const {
    return (static_cast<std::size_t>(s) * microbatches + m) * slices + q;
  }
  bool is_recomputed(std::uint32_t s, std::uint32_t m, std::uint32_t q) const {
    return !recomputed.empty() && recomputed[triple(s, m, q)] != 0;
  }
  friend bool operator==(const Partition&, const Partition&) = default;
  std::size_t triples() const { return static_cast<std::size_t>(stages) * microbatches * slices; }
};

/// The value of an op's slice index; 0 if it has none.
std::uint32_t slice_of(const OpSet& ops, OpId op);

/// All microbatches through all stages, rising, each stage once: what a sequential run needs no Program for.
Partition plain_partition(std::uint32_t stages, std::uint32_t microbatches, std::uint32_t slices = 1);

/// The same model, routes and versions: every stage once and here, nothing recomputed, all versions of a step kept.
Partition plainly(Partition partition);

/// The partition that a program trains. `plan` must know devices, waits, payloads and expected makers.
///
/// Errors: what is no training step: an op of F, I, W missing or twice, an R that does not
/// stand between forward and backward, a microbatch on a stage that lies on two
/// devices, slices out of order, data that comes from elsewhere than the stage next to it, a microbatch with several
/// routes. Cost: O(ops).
Result<Partition> find_partition(const Program& program, const Plan& plan);

}  // namespace stave
