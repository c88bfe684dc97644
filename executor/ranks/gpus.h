// Gpus: which GPU each rank has, found out by the ranks together before any of them uses one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "executor/ranks/ranks.h"

namespace stave {

/// What a rank sees of its host.
struct GpusSeen {
  std::string host;
  /// Among the ranks of the host, if it was told.
  std::optional<std::uint32_t> local_rank;
  /// What tells a GPU of the host from its others, in the order in which the rank counts them.
  std::vector<std::string> gpus;
  /// Why it sees none; empty if that is not known.
  std::string error;
};

/// By rank, the number of its GPU as it counts them: its number among the ranks of its host, which is counted where it
/// was not told; the only one where it sees no other (Slurm shows each task its own).
///
/// Errors: fewer GPUs than ranks on a host, or none; two ranks with one GPU.
Result<std::vector<std::uint32_t>> assign_gpus(const std::vector<GpusSeen>& ranks);

/// The same for this rank, which all call. Errors: those, the same on all; a rank that failed or is gone.
Result<std::uint32_t> find_gpu(const Ranks& ranks, const GpusSeen& mine);

}  // namespace stave
