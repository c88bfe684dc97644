// Measured times as a costs file, as scheduler/costs_file.h reads it.
#pragma once

#include <string>
#include <vector>

#include "cli/measure/timeline_file.h"
#include "core/program.h"
#include "executor/profile.h"
#include "executor/stage/stage.h"

namespace stave {

struct MeasuredCosts {
  struct Line {
    /// An op, a payload, or "F with B".
    std::string name;
    /// One, or one a stage.
    std::vector<double> values;
  };
  /// Empty if the unit is none of time.
  std::string unit;
  /// Said at the top, a line each.
  std::vector<std::string> notes;
  std::vector<Line> lines;
};

/// The file's text; values to nine digits behind the point.
std::string costs_text(const MeasuredCosts& costs);

/// Every kind of op that a program has and the model computes, and every payload that carries data.
MeasuredCosts costs_of(const ModelProfile& profile, const Program& program, const Workload& workload);

/// Means by kind and stage, and of an overlapped pair by kind; medians of a message by payload, since one that comes late tells of
/// its receiver. A stage without an op of a kind has the kind's mean.
MeasuredCosts costs_of(const RecordedTimeline& timeline);

}  // namespace stave
