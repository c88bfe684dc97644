// Memory of a priced schedule over time, and what each device holds at its peak, as text and as JSON.
// What is counted is scheduler/memory.h's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/pipeline.h"

namespace stave {

/// A size as the costs have it: bytes of a model, "12.3 GB", or a number of the file's own unit.
std::string size_text(const Built& built, double size);

/// A line a device of its peak, and a row of bars over time. `built` must be priced, and have a peak.
std::string memory_text(const Built& built);

/// Adds the same to each device of a report, as "memory".
void add_memory(nlohmann::ordered_json& report, const Built& built);

}  // namespace stave
