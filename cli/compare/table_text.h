// TableText: the competitors side by side, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/compare/verdicts.h"

namespace stave {

/// A row for each that is ranked, in the order of the command line, or best first where `sorted`; what the columns
/// mean; the others with the reason; the rankings; and why the first is ahead.
std::string table_text(const Verdicts& verdicts, bool sorted);

nlohmann::ordered_json table_json(const Verdicts& verdicts);

}  // namespace stave
