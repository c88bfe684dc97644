// A schedule under other costs, without expanding it again: parameters of a file that its costs alone depend on, and
// the costs once more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/arguments.h"
#include "compiler/compile.h"
#include "compiler/diagnostics.h"
#include "compiler/prices.h"
#include "compiler/schedule.h"

namespace stave {

/// The same file with one more parameter, which a `--cost` argument that is put on it later may use; the file's own
/// text does not know it. `name` must be none of its parameters.
Compiled with_parameter(const Compiled& compiled, const std::string& name, Rational otherwise);

/// The same file with a parameter of the name of an op or of a message ("F", "message"), which is what that costs from
/// then on. None if nothing that costs is called so.
std::optional<Compiled> with_cost_parameter(const Compiled& compiled, const std::string& name);

/// The costs of `schedule`, which was expanded from `compiled` under arguments that differed from these in nothing but
/// such parameters, and under the same prices, if there were any. None if a cost has no value or may not be; said in
/// `sink`. Cost: an evaluation for each value of the indices that a cost line uses, and one for each pair.
std::optional<CostSet> price_again(const Compiled& compiled, const std::vector<Argument>& arguments,
                                   const Schedule& schedule, const Prices* prices, Diagnostics& sink);

}  // namespace stave
