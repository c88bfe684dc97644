// profile: what the stages of a model take here, one op after another on one thread, and what a message takes between two
// threads. Running a schedule is run.h; making costs of it is for others.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/ticks.h"
#include "executor/partition.h"
#include "executor/stage/stage.h"

namespace stave {

/// Median lengths, of a slice where microbatches are cut. Unit: ns of CPU time.
struct StageTimes {
  Ticks forward = 0;
  Ticks input_gradient = 0;
  /// Taken later than the input gradient, when other stages have run in between.
  Ticks weight_gradient = 0;
  /// Input and weight gradient, one right after the other.
  Ticks backward = 0;
  /// 0 where nothing is recomputed.
  Ticks recompute = 0;
  Ticks optimizer_step = 0;
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
  LinkTimes link;
  /// How many times longer stages take while another thread copies messages all the time.
  double slow_down = 1;
};

inline constexpr std::uint32_t kMostRepeats = 1000;

/// Runs `repeats` (1 to kMostRepeats) microbatches through all stages, half of them with backwards in one, and two to
/// begin with that do not count. The workload is configured, made, and left after a step of these.
/// Errors: a partition that the model does not fit; not enough memory; a stage that fails.
/// Cost: repeats times the forward and backward of a microbatch, three times; some 10 ms for the link.
Result<ModelProfile> profile_model(Workload& workload, const Partition& partition, std::uint32_t repeats);

}  // namespace stave
