// Columns: a table of text, the first column to the left, the others to the right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/rational.h"

namespace stave {

/// Rows of equally many cells, the first row the heading; a column that is empty below its heading is left out.
std::string columns(const std::vector<std::vector<std::string>>& rows);

/// At most four digits after the point; "-" for none.
std::string number_text(const std::optional<Rational>& value);

}  // namespace stave
