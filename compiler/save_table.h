// A table as text that reads back to the same table: PyTorch's CSV, or a `.sched` file with the order written out.
#pragma once

#include <optional>
#include <string>

#include "compiler/schedule.h"
#include "compiler/source.h"
#include "core/result.h"
#include "core/table.h"

namespace stave {

/// PyTorch's compute-only CSV, canonical: a row a device, stage, letter and microbatch, no idle cells.
/// Errors: an op that PyTorch's tables do not have, a stage on two devices. Cost: O(entries).
Result<std::string> write_csv(const Table& table);

/// The file of `schedule` with the values of its parameters as their defaults, and in place of its order a `table`: the
/// same costs, memory, freezing and expectations, to be priced as it stands. What it brings in from other files is part of
/// the text. `costs` is the argument of `--cost`, if
/// there was one; its lines follow the file's own. Adds sources. `schedule` must come from `expand`. Cost: O(entries).
std::string write_sched(Sources& sources, const Schedule& schedule, const Table& table,
                        std::optional<SourceId> costs = std::nullopt);

}  // namespace stave
