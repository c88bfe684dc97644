// Competitor: a schedule of `stave compare`, read, with the parameters that are its own and what a sweep changes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/axis.h"
#include "cli/pipeline.h"
#include "compiler/arguments.h"
#include "core/result.h"

namespace stave {

/// What an axis of a sweep is to one competitor.
enum class AxisRole : std::uint8_t {
  /// It does not know the name.
  None,
  /// A parameter of its text.
  Parameter,
  /// What an op or a message costs, or a name that only `--cost` uses: its costs change, and nothing else.
  Cost,
};

struct Competitor {
  /// The name of the schedule, or of its file if it is a CSV; where several have the same, with the parameters given to
  /// it, or a number.
  std::string label;
  /// With `--cost` and the axes put on it.
  Loaded loaded;
  std::vector<Argument> arguments;
  /// Shape: one an axis.
  std::vector<AxisRole> roles;
  /// It cannot take part: why, in a few words. Its diagnostics are in `loaded`.
  std::string reason;

  /// Its arguments, and of each axis that it knows the value with the number `at[axis]`.
  std::vector<Argument> arguments_at(const std::vector<Axis>& axes, const std::vector<std::size_t>& at) const;
};

struct CompetitorOptions {
  ScheduleOptions schedules;
  /// The whole library takes part, and what is wrong with a file of it is a reason.
  bool library = false;
};

struct Competitors {
  std::vector<Competitor> all;
  /// For the reader: which `-D` and which axis means nothing to which schedule.
  std::vector<std::string> notes;
};

/// Errors: a file that cannot be read; a name of `-D` or of an axis that no schedule knows; a parameter of a schedule
/// that has a value and is swept; a `--cost` that does not fit a schedule which was named.
Result<Competitors> read_competitors(const CompetitorOptions& options, const std::vector<Axis>& axes);

}  // namespace stave
