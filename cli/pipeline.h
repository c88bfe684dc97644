// Pipeline: from the argument of a command to everything that is made of it, step by step.
// Every command goes this way; what it prints of it is its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "compiler/source.h"
#include "core/program.h"
#include "core/table.h"
#include "core/timeline.h"
#include "scheduler/costs.h"

namespace stave {

/// How far to go.
enum class Step : std::uint8_t {
  /// The table, in an order that may be impossible.
  Table,
  /// The table, verified.
  Checked,
  /// The program, verified, and its price.
  Priced,
};

/// What is made of one schedule, as far as it came.
struct Built {
  Sources sources;
  Diagnostics sink;
  std::optional<Schedule> schedule;
  std::optional<Costs> costs;
  std::optional<Table> table;
  std::optional<Program> program;
  std::optional<Timeline> timeline;
};

/// Makes `into` of a schedule, and tries its `expect` lines when it is priced.
///
/// Returns whether it came as far as `step` with nothing wrong; what is wrong is in `into.sink`. Errors: a file that
/// cannot be read, a parameter or cost that does not exist or cannot be read.
Result<bool> build(Built& into, const ScheduleArgument& argument, const std::string& cost, Step step);

/// As `build` of the options' one schedule; prints what is wrong. Done, or the status to end with.
Exit build_one(Built& into, const ScheduleOptions& options, Step step);

/// Prints the diagnostics to standard error, and how many more there were.
void print_diagnostics(const Built& built);

/// "zb_h1 P=4 M=8": the schedule with the values of its parameters.
std::string title_of(const Built& built);

}  // namespace stave
