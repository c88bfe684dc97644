// From the Ast of a file, and of the files it uses, to a Code: every name resolved, everything that can be said without
// the values of the parameters said. What the expressions amount to is `expand`, of compile.h.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ast.h"
#include "compiler/code.h"
#include "compiler/diagnostics.h"
#include "compiler/uses.h"

namespace stave {

/// The Code of `file`, with the ops, lets, costs and memory of what is brought in before its own; none if there are
/// errors, which are in `sink`. An op takes the place of one of the same name that came before it in another file.
std::optional<Code> check(const std::vector<BroughtIn>& brought_in, Ast file, Diagnostics& sink);

/// The lines of a `--cost` argument, resolved in view of `code` and appended to its costs, so that they come last.
/// False if there are errors.
bool check_costs(const Ast& argument, const std::vector<ValueLine>& lines, Code& code, Diagnostics& sink);

}  // namespace stave
