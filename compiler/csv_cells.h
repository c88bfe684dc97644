// The cells of a CSV file, character by character: rows, quotes, PyTorch's actions. What the table means is csv.h's.
#pragma once

#include "compiler/ast.h"
#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

/// A row a line, in order; letters F, I, W, B. Errors go to `sink`, at most one a row. Cost: O(bytes).
TableDecl read_csv_cells(const Sources& sources, SourceId source, Diagnostics& sink);

}  // namespace stave
