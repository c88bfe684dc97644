// Memory of each device over time, in the sizes of a schedule's `memory` lines: its ops take and give back as they
// start and end, the versions of weights that its ops still read are kept, and with the weights of a stage its gradients and
// the optimizer's state, where they have a size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/rational.h"
#include "compiler/schedule.h"
#include "core/ids.h"
#include "core/program.h"
#include "core/timeline.h"

namespace stave {

struct PeakMemory {
  /// Weights included, and the slots of messages where their sizes are known.
  Rational size;
  /// The first entry that reaches it when it starts; OpId::kNone if the weights alone are the peak.
  std::uint32_t position = OpId::kNone;
};

/// Shape: one a device. Exact; none if the sizes have no common denominator that fits into 64 bits, or the peak of a
/// device does not: `sink`, if there is one, then says which. Cost: a sort of the entries.
std::optional<IdVector<DeviceId, PeakMemory>> peak_memory(const Schedule& schedule, const Program& program,
                                                          const Timeline& timeline, Diagnostics* sink = nullptr);

/// What a device holds from `time` to the next, once all of that moment has been taken and given back. Unit: ticks.
struct MemoryStep {
  Ticks time = 0;
  double held = 0;
};

/// In time; the first at 0. Of sizes for which there is a peak.
std::vector<MemoryStep> memory_over_time(const Schedule& schedule, const Program& program, const Timeline& timeline,
                                         DeviceId device);

}  // namespace stave
