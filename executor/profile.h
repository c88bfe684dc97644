// profile: what the stages of a model take here, in a run of a schedule and one op after another on one thread, and what a
// message takes between two threads. Running a schedule is run.h; making costs of it is for others.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/operations.h"
#include "core/result.h"
#include "core/ticks.h"
#include "executor/partition.h"
#include "executor/run.h"
#include "executor/stage/stage.h"

namespace stave {

/// What the ops of a stage take, of a slice where microbatches are cut; 0 where it is not known. Unit: ns of CPU time.
struct StageTimes {
  std::array<Ticks, kOperations.size()> ns = {};

  Ticks& operator[](Operation operation) { return ns[static_cast<std::size_t>(operation)]; }
  Ticks operator[](Operation operation) const { return ns[static_cast<std::size_t>(operation)]; }
};

/// What an overlapped pair takes, `first` leading.
struct PairTime {
  KindId first;
  KindId second;
  Ticks ns = 0;
};

/// Between two threads of this process.
struct LinkTimes {
  /// Half of the time in which a word goes to the other thread and back.
  Ticks latency_ns = 0;
  /// Of a copy of the greatest message, or of 1 MiB where that is more.
  double bytes_per_ns = 0;

  Ticks message_ns(std::size_t bytes) const;
};

struct ModelProfile {
  IdVector<StageId, StageTimes> stages;
  /// By kind; empty where none were run.
  std::vector<PairTime> pairs;
  LinkTimes link;
  /// How many times longer stages take while another thread copies messages all the time.
  double slow_down = 1;
};

inline constexpr std::uint32_t kMostRepeats = 1000;

/// Runs `repeats` (1 to kMostRepeats) microbatches through all stages twice, once with backwards in one and once with the
/// weight gradients after those of the inputs of all stages, and two to begin with that do not count. Medians count; nothing
/// is measured of G. The workload is configured, made, and left after a step of these.
/// Errors: a partition that the model does not fit; not enough memory; a stage that fails.
/// Cost: repeats times the forward and backward of a microbatch, three times; some 10 ms for the link.
Result<ModelProfile> profile_model(Workload& workload, const Partition& partition, std::uint32_t repeats);

/// Puts what ops took in a run of `ops` in place of what they took by themselves: beside other ops, with their buffers in
/// and out of the caches as a schedule leaves them. What the run did not have is scaled by what the others of its stage
/// took there against what they took alone.
void take_lengths(ModelProfile& profile, const OpSet& ops, const std::vector<TypicalLength>& lengths);

}  // namespace stave
