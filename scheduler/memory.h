// Memory of each device over the order of its ops, in the sizes of a schedule's `memory` lines. It does not depend on
// times: a device takes and gives back as its own ops start and end, one after the other.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/diagnostics.h"
#include "compiler/rational.h"
#include "compiler/schedule.h"
#include "core/ids.h"
#include "core/table.h"

namespace stave {

struct PeakMemory {
  /// Weights included.
  Rational size;
  /// The first entry that reaches it when it starts; OpId::kNone if the weights alone are the peak.
  std::uint32_t position = OpId::kNone;
};

/// Shape: one a device. Exact; none if the sizes have no common denominator that fits into 64 bits, or the peak of a
/// device does not: `sink`, if there is one, then says which. Cost: O(entries).
std::optional<IdVector<DeviceId, PeakMemory>> peak_memory(const Schedule& schedule, const Table& table,
                                                          Diagnostics* sink = nullptr);

}  // namespace stave
