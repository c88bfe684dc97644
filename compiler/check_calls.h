// Functions and lets that need themselves, or each other without end.
#pragma once

#include <vector>

#include "compiler/code.h"
#include "compiler/resolve.h"

namespace stave {

/// Reports a shortest-by-search chain of functions and lets that comes back to its beginning, and chains longer than an
/// evaluation may be deep. Shape: one entry a let, one a function. Cost: linear.
void check_calls(const Code& code, const std::vector<Resolver::Calls>& lets,
                 const std::vector<Resolver::Calls>& functions, Resolver& resolver);

}  // namespace stave
