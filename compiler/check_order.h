// The `on device` and the `table` of a file, with their names resolved.
#pragma once

#include <vector>

#include "compiler/ast.h"
#include "compiler/code.h"
#include "compiler/resolve.h"

namespace stave {

/// Fills Code::devices and the table, and `calls` for the functions that bodies declare. The resolver has entered `file`,
/// whose table, which may be large, is taken.
void check_order(Ast& file, Resolver& resolver, Code& code, std::vector<Resolver::Calls>& calls);

}  // namespace stave
