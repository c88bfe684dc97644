// Ranks: a run whose devices lie in several processes, one a process, as one of them sees it; and what they tell each
// other around a step.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ids.h"
#include "core/program.h"
#include "core/result.h"
#include "core/timeline.h"
#include "executor/control/control.h"
#include "executor/reference.h"
#include "executor/transport/transport.h"

namespace stave {

struct Ranks {
  Control& control;
  /// Null if messages go from GPU to GPU.
  Transport* transport = nullptr;
  /// Among the ranks of this host, if whoever started them has said so.
  std::optional<std::uint32_t> local_rank;

  std::uint32_t rank() const { return control.rank(); }
  /// Device d is that of rank d.
  std::uint32_t rank_of(DeviceId d) const { return d.value; }
  bool has(DeviceId d) const { return rank_of(d) == rank(); }
};

/// Waits for all ranks, and gives time 0 of the step that then begins, as now_ns() counts here: one moment on all.
/// Errors: a rank that failed or is gone.
Result<Ticks> common_origin(const Ranks& ranks);

/// After a step: `loss` becomes the sum of all ranks' losses, added in their order, `signal` the first rank's that is not
/// 0, `makespan_ns` the greatest, and `timeline`, which all have or none (null), gets the times of what ran elsewhere: a
/// message begins when both its ends may, and ends when it is received. Errors: a rank that failed or is gone.
Result<void> share_step(const Ranks& ranks, const Program& program, double& loss, int& signal, Ticks& makespan_ns,
                        Timeline* timeline);

/// How many steps the checkpoint has done from which all ranks go on, of which each has found one. Errors: ranks that
/// found different ones; a rank that failed or is gone.
Result<void> agree_on_checkpoint(const Ranks& ranks, std::uint64_t done);

/// `values` become the sums over all ranks, each added in their order. Errors: a rank that failed or is gone.
Result<void> share_sum(const Ranks& ranks, std::vector<double>& values);

/// `comparison` of the stages here becomes that of all ranks' stages. Errors: a rank that failed or is gone.
Result<void> share_comparison(const Ranks& ranks, Comparison& comparison);

}  // namespace stave
