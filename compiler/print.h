// From Ast to text, in one way of writing: what stands together first, then what orders it, then what must hold.
// Parsing the text gives the Ast again, but for places in the file. Comments are not in an Ast, so they are lost.
#pragma once

#include <string>

#include "compiler/ast.h"

namespace stave {

/// The whole file. Cost: O(size).
std::string print_ast(const Ast& ast);

/// One expression, with no more parentheses than it needs: `(M + P - 1) * (F + B)`.
std::string print_expression(const Ast& ast, ExprId expr);

/// A number as the language writes it: `0.25`, `7`, `1 / 3`.
std::string print_number(Rational value);

}  // namespace stave
