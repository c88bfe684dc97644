// The shape of an Ast: all that it says but for places in the file, as one text that can be compared.
// Written apart from print.cpp, so that a test of one is no test of itself.
#pragma once

#include <string>

#include "compiler/ast.h"

namespace stave {

std::string shape(const Ast& ast);
std::string shape(const Ast& ast, ExprId expr);

}  // namespace stave
