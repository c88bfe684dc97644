// Report: the figures of a priced schedule, as a line, as a table and as JSON.
// What they are is scheduler/analysis.h's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/pipeline.h"

namespace stave {

/// A time as a number with its unit: "27", "18522.5 us". At most four digits after the point.
std::string time_text(const Built& built, Ticks time);

/// The unit as it stands behind a time: " us", or nothing.
std::string unit_text(const Built& built);

/// At most four digits after the point.
std::string number_text(double value);

/// A whole number stays one. Unit: that of the costs.
nlohmann::ordered_json time_json(const Report& report, Ticks time);
nlohmann::ordered_json number_json(Rational value);

/// Columns as wide as their widest cell, numbers to the right. At least one row; all are as long as the first.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

/// As a share of 1; the nearest double where the exact value does not fit.
double bubble_of(const Report& report);
double span_bubble_of(const Report& report);

/// "makespan 27, bubble 11.1 % (of makespan times devices), peak activations 4 4 4 4". `built` must be priced.
std::string summary_of(const Built& built);

/// Every figure with what it means, and a line for each device. `built` must be priced.
std::string report_text(const Built& built);

/// The fields that ARCHITECTURE names for `simulate --json`; those of later analyses are left out.
nlohmann::ordered_json report_json(const Built& built);

}  // namespace stave
