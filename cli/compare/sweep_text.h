// SweepText: a sweep as a table with its winners and crossings, as CSV and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/axis.h"
#include "cli/compare/sweep.h"

namespace stave {

/// A row a point, the shortest marked by `*`, of many competitors those that are it somewhere; then who is shortest
/// where, and who passes whom along the last axis.
std::string sweep_text(const Sweep& sweep, const std::vector<Axis>& axes, const std::vector<std::string>& labels);

/// A column for each axis and each competitor, and `best`; empty where there is no price. Lines end in LF; numbers are
/// whole, or the nearest double.
std::string sweep_csv(const Sweep& sweep, const std::vector<Axis>& axes, const std::vector<std::string>& labels);

nlohmann::ordered_json sweep_json(const Sweep& sweep, const std::vector<Axis>& axes,
                                  const std::vector<std::string>& labels);

}  // namespace stave
