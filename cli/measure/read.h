// Reading a timeline file, for the commands that take one.
#pragma once

#include <string>

#include "cli/measure/timeline_file.h"
#include "core/result.h"

namespace stave {

/// Whether a file looks like JSON, which no schedule does. Standard input never does: it can be read once only.
bool looks_like_timeline(const std::string& path);

/// Errors, each naming the file: as of `read_source` and `read_timeline`.
Result<RecordedTimeline> load_timeline(const std::string& path);

}  // namespace stave
