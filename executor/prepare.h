// Prepare: what every run looks at before it begins, on CPUs and on GPUs: its options, and the memory it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/program.h"
#include "core/result.h"
#include "executor/plan.h"
#include "executor/run.h"
#include "executor/stage/stage.h"

namespace stave {

/// Errors: numbers of steps out of their bounds; prices that do not fit the program, are negative or too long to keep.
Result<void> check_options(const Program& program, const RunOptions& options);

/// Notes in the plan which devices are here, if they lie on several ranks. Errors: another number of ranks than devices; a
/// program that was lowered unchecked.
Result<void> place(const Program& program, const RunOptions& options, Plan& plan);

/// By payload, the greatest of its messages. `workload` must be configured.
std::vector<std::size_t> payload_sizes(const Program& program, const Workload& workload);

/// Bytes for parameters, activations and messages of all devices that are here. Errors: more than `bound`.
Result<std::uint64_t> check_memory(const Program& program, const Plan& plan, const Workload& workload,
                                   const std::vector<std::size_t>& payloads, std::uint64_t bound);

}  // namespace stave
