// The critical path and the slack of a priced schedule, as tables and as JSON.
// What they are is scheduler/critical_path.h's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/pipeline.h"

namespace stave {

/// What the makespan is made of: by op, by stage and by link. `built` must be priced.
std::string critical_text(const Built& built);
nlohmann::ordered_json critical_json(const Built& built);

/// Start, end and slack of every op, a line each. `built` must be priced.
std::string slack_text(const Built& built);

/// Adds the same to each device of a report, as "ops".
void add_slack(nlohmann::ordered_json& report, const Built& built);

}  // namespace stave
