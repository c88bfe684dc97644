// Reader of what stands between the braces of a `table`: rows of cells, perhaps millions.
// What a letter, a stage or a microbatch of a cell means is decided by check.h.
#pragma once

#include "compiler/ast.h"
#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

/// Reads the rows and cells in `body` into `into`; calls such as `Decode(0, 1, 2)` become expressions of `ast`.
/// Errors: `table-row`, `table-cell`, `number-too-large`; a bad cell is left out. Stops after Diagnostics::kMost
/// errors. Cost: a few nanoseconds a byte, 20 bytes a cell.
void read_table_body(const Sources& sources, Span body, Ast& ast, TableDecl& into, Diagnostics& sink);

}  // namespace stave
