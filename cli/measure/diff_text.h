// What `stave diff` prints, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/measure/table_diff.h"
#include "cli/measure/timeline_diff.h"

namespace stave {

/// The names of what is compared, as they are shown.
struct DiffNames {
  std::string first;
  std::string second;
};

std::string diff_text(const TableDiff& diff, const DiffNames& names);
nlohmann::ordered_json diff_json(const TableDiff& diff, const DiffNames& names);

/// The timelines' names say of each what it is.
std::string diff_text(const TimelineDiff& diff, const DiffNames& names);
nlohmann::ordered_json diff_json(const TimelineDiff& diff, const DiffNames& names);

}  // namespace stave
