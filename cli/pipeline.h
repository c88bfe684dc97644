// Pipeline: from the argument of a command to everything that is made of it, step by step.
// Every command goes this way; what it prints of it is its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "compiler/arguments.h"
#include "compiler/compile.h"
#include "compiler/diagnostics.h"
#include "compiler/prices.h"
#include "compiler/schedule.h"
#include "compiler/source.h"
#include "core/program.h"
#include "core/result.h"
#include "core/table.h"
#include "core/timeline.h"
#include "scheduler/analysis.h"
#include "scheduler/contention/turns.h"
#include "scheduler/costs.h"
#include "scheduler/model_prices.h"

namespace stave {

/// A schedule file that has been read, to be expanded any number of times.
struct Loaded {
  std::string file;
  Sources sources;
  /// What is wrong with the text.
  Diagnostics sink;
  std::optional<Compiled> compiled;
  SourceId source;
  /// The argument of --cost, if there was one.
  std::optional<SourceId> costs;
  /// Prices in place of the file's own; null if there are none.
  std::shared_ptr<const Prices> prices;
  /// Of them those of a model on a cluster; null without.
  std::shared_ptr<const ModelPrices> machine;
  SimulationRules rules;
  /// Added to every op of what is expanded.
  std::optional<Rational> launch;
  bool is_csv = false;

  /// As it is shown: "<stdin>" for standard input.
  std::string name() const { return printable(sources[source].name); }

  bool ok() const { return compiled.has_value(); }
};

/// Reads a schedule and what the options say of its costs. What is wrong with the text of a file, of costs too, is in the
/// result's sink. Errors: a file that cannot be read; a `--cost` that cannot be, or is of something that has none.
Result<Loaded> load(const std::string& file, const ScheduleOptions& options);

/// A cluster and a model, and the place of each device; null where a file is wrong.
struct Machine {
  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const Model> model;
  std::vector<std::uint32_t> map;
};

/// Reads `--cluster`, `--model` and `--map`. What is wrong in the files goes to the sink. Errors: one without the other, a
/// file that cannot be read, a map that is none.
Result<Machine> read_machine(Sources& sources, const ScheduleOptions& options, Diagnostics& sink);

/// Puts the costs of a `--cost` argument in place of the file's own, which must be ok. Errors: as of `load`.
Result<void> replace_costs(Loaded& loaded, const std::string& cost);

/// How far to go.
enum class Step : std::uint8_t {
  /// The table, in an order that may be impossible.
  Table,
  /// The table, verified.
  Checked,
  /// The program, verified, and its price.
  Priced,
};

/// How many `expect` lines of each outcome there were.
struct ExpectCounts {
  std::uint32_t hold = 0;
  std::uint32_t fail = 0;
  std::uint32_t do_not_apply = 0;
  std::uint32_t skipped = 0;

  /// "3 expectations hold, 1 does not apply".
  std::string text() const;
};

/// What is made of one schedule, as far as it came.
struct Built {
  /// What is wrong with it, and under `expects` which of its `expect` lines are false.
  Diagnostics sink;
  Diagnostics expects;
  ExpectCounts expect_counts;
  /// Why an `expect` was skipped, each with its place: "file:line: ...".
  std::vector<std::string> notes;
  std::optional<Schedule> schedule;
  std::optional<Costs> costs;
  std::optional<Table> table;
  std::optional<Program> program;
  std::optional<Timeline> timeline;
  /// Its times are those with something that messages contend for; and who had it before whom.
  bool contends = false;
  Turns turns;
  std::optional<Report> report;
};

/// Makes everything up to `step`, under these parameters; when it is priced, its `expect` lines are tried.
///
/// Done means that it came as far as asked for. Refused: a `require` does not hold. Rejected: it is wrong. Both are said
/// in the sink. Errors: a parameter that does not exist; a cost of --cost that cannot be.
Result<Outcome> build(Built& into, const Loaded& loaded, const std::vector<Argument>& arguments, Step step);

/// The two halves of `build`: the schedule alone, and all that is made of it, for those who change its costs in between. The
/// second adds what it takes to launch the ops.
Result<Outcome> expand_into(Built& into, const Loaded& loaded, const std::vector<Argument>& arguments);
Result<Outcome> build_expanded(Built& into, const Loaded& loaded, Step step);

/// Rejected, for what is wrong with a schedule. Errors: what is wrong is said of the costs of `--cost`.
Result<Outcome> rejected(const Loaded& loaded, const Diagnostics& wrong);

/// The parameters of a command line. Errors: a value that cannot be read.
Result<std::vector<Argument>> read_arguments(const std::vector<NamedText>& parameters);

/// A schedule that went all the way for a command that takes one.
struct One {
  Loaded loaded;
  Built built;
};

/// Loads and builds the options' one schedule, and prints what is wrong with it, `expect` lines too. Done, or the status
/// to end with; an `expect` that is false is a warning and changes no status.
Exit build_one(One& into, const ScheduleOptions& options, Step step);

/// Prints diagnostics to standard error, with the lines of the files they speak of.
void print_diagnostics(const Sources& sources, const Diagnostics& diagnostics);

/// The same, none of it an error.
Diagnostics as_warnings(const Diagnostics& diagnostics);

/// The files that a command line names, for outputs that must not be one of them.
std::vector<std::string> files_of(const ScheduleOptions& options);

/// The same, and the files that the schedule uses.
std::vector<std::string> files_of(const ScheduleOptions& options, const Loaded& loaded);

/// Names and values of the parameters, in the order of the text.
std::vector<NamedText> parameters_of(const Schedule& schedule);

/// "zb_h1 P=4 M=8": the schedule with the values of its parameters.
std::string title_of(const Schedule& schedule);

}  // namespace stave
