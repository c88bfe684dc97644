// PyTorch's compute-only tables, read strictly: what its own reader lets through by accident is an error here. A table
// becomes what the same table in a `.sched` file would become, its cells keeping their places in the CSV file.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/compile.h"
#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

/// True if `name` ends in `.csv`, in any case, or `text` begins like a table: a quote, a comma, a digit, a bracket or a
/// byte-order mark, none of which begins a schedule.
bool looks_like_csv(std::string_view name, std::string_view text);

/// The schedule of a CSV table: a device a row, the stages where their ops stand, as many microbatches as the largest
/// number says, the operations, needs, costs and memory of the standard library. `expand` it without arguments.
///
/// None if there are errors, which are in `sink`, at most one a row: anything that is no op of PyTorch's compute-only
/// format, a blank line, a stage in two rows or in none. That every op stands once is left to `verify`.
/// Source: torch/distributed/pipelining/schedules.py of PyTorch 2.9, `_load_csv`. Cost: some ten ns a cell.
std::optional<Compiled> compile_csv(Sources& sources, SourceId source, Diagnostics& sink);

}  // namespace stave
