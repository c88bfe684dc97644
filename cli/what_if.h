// What if: the table of a schedule priced again under other costs, in the same order.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/pipeline.h"
#include "compiler/arguments.h"
#include "core/result.h"

namespace stave {

/// One price beside the first.
struct WhatIf {
  /// As written.
  std::string text;
  Costs costs;
  Timeline timeline;
  Report report;
};

/// The price under each of `changes`, every one on its own. A change is a list of `NAME=VALUE` and `NAME*FACTOR`
/// (`NAME/FACTOR`), taken in order, as in `--cost`; `link` is every message. A factor is that of a time.
///
/// Errors: a change that cannot be read, a name that nothing has (with the nearest), costs that cannot be. `one` must
/// be priced, from these arguments. Cost: an expansion, a lowering and a simulation each.
Result<std::vector<WhatIf>> what_if(const One& one, const std::vector<Argument>& arguments,
                                    const std::vector<std::string>& changes);

/// A table: now, each change, and its difference.
std::string what_if_text(const Built& built, const std::vector<WhatIf>& changes);
nlohmann::ordered_json what_if_json(const Built& built, const std::vector<WhatIf>& changes);

}  // namespace stave
