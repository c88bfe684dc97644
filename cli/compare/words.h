// Words: why one schedule takes less time than another, and where the ranking turns, as sentences.
#pragma once

#include <string>
#include <vector>

#include "cli/compare/verdicts.h"
#include "scheduler/compare/account.h"

namespace stave {

/// A sentence each: by how much the first is ahead, where a device of the second loses that time on average, and what
/// the messages of their critical paths have to do with it. Both must have levels, and the second take no less.
std::vector<std::string> why(const Entry& shorter, const Entry& longer);

/// Two lines for each step between levels: the ranking of each level, and who passes whom. Empty of a single one.
std::string turns_text(const Verdicts& verdicts);

}  // namespace stave
