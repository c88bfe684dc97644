// The `cost`, `memory` and `freeze` lines of a file: what each is about, and its value with its names resolved.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ast.h"
#include "compiler/code.h"
#include "compiler/resolve.h"

namespace stave {

/// Appends the lines of `ast`, which the resolver has entered.
void check_prices(const Ast& ast, Resolver& resolver, Code& code);

/// Declares the operands of `call`, which are new names, as the indices of `op`. Shape: one slot for each index, kNoSlot
/// for a slice that is left out; shorter after an error.
std::vector<std::uint32_t> declare_indices(const Expr& call, const OpCode& op, Resolver& resolver);

}  // namespace stave
