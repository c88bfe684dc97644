// stave compare: schedules side by side, at three levels or over a sweep; or which of the library to run.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/axis.h"
#include "cli/best_map.h"
#include "cli/command.h"
#include "cli/compare/competitor.h"
#include "cli/compare/levels.h"
#include "cli/compare/standard.h"
#include "cli/compare/sweep.h"
#include "cli/compare/sweep_text.h"
#include "cli/compare/table_text.h"
#include "cli/compare/verdicts.h"
#include "cli/over.h"

namespace stave {
namespace {

struct CompareArguments {
  CompetitorOptions competitors;
  std::vector<std::string> over;
  std::string csv;
  std::string activations;
  std::string memory;
  bool as_written = false;
  bool json = false;
};

Result<std::optional<Rational>> read_limit(const std::string& text, const char* option) {
  if (text.empty()) return std::optional<Rational>();
  const Result<Argument> value = read_argument("limit=" + text);
  if (!value || value.value().is_list || value.value().number < Rational(0))
    return Failure{fmt::format("{} takes a number from 0, and not `{}`", option, text)};
  return std::optional<Rational>(value.value().number);
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_error(printable(fmt::format("note: {}\n", note)));
}

/// The files that are read, the library's and those that they use among them.
std::vector<std::string> inputs_of(const CompareArguments& arguments, const Competitors& competitors) {
  std::vector<std::string> result;
  for (const Competitor& each : competitors.all) {
    const std::vector<std::string> files = files_of(arguments.competitors.schedules, each.loaded);
    result.insert(result.end(), files.begin(), files.end());
    result.push_back(each.loaded.file);
  }
  return result;
}

Exit finish(const std::string& text, Exit exit) {
  const Result<void> printed = print(text);
  return printed ? exit : fail(printed.failure().message);
}

std::string dump(const nlohmann::ordered_json& json) { return json.dump(2) + "\n"; }

Exit compare_over(const CompareArguments& arguments, const Competitors& competitors, const std::vector<Axis>& axes) {
  const Result<Sweep> sweep = price_sweep(competitors.all, axes, {arguments.as_written, arguments.competitors.library});
  if (!sweep) return fail(sweep.failure().message);
  std::vector<std::string> labels;
  for (const Competitor& each : competitors.all) labels.push_back(each.label);
  const Exit exit = sweep.value().wrong > 0 && !arguments.competitors.library ? Exit::Rejected : Exit::Done;
  if (exit != Exit::Done) {
    const Competitor& wrong = competitors.all[sweep.value().first_wrong];
    print_error(printable(
        fmt::format("{} without a price; the first: {} {}\n",
                    sweep.value().wrong == 1 ? "1 point is" : fmt::format("{} points are", sweep.value().wrong),
                    wrong.label, text_of(sweep.value().first_wrong_arguments))));
    print_diagnostics(wrong.loaded.sources, sweep.value().first_wrong_sink);
  }
  if (!arguments.csv.empty()) {
    const Result<void> written =
        write_output(arguments.csv, sweep_csv(sweep.value(), axes, labels), inputs_of(arguments, competitors));
    if (!written) return fail(written.failure().message);
    // Standard output has the CSV and nothing else then.
    if (arguments.csv == "-") return exit;
  }
  return finish(
      arguments.json ? dump(sweep_json(sweep.value(), axes, labels)) : sweep_text(sweep.value(), axes, labels), exit);
}

Exit compare_levels(const CompareArguments& arguments, const Competitors& competitors, const Limits& limits) {
  std::optional<Standard> standard;
  const bool library = arguments.competitors.library;
  if (!arguments.as_written || library) standard = find_standard(competitors.all, {}, {});
  std::vector<Entry> entries;
  Progress progress("pricing");
  bool rejected = false;
  for (const Competitor& each : competitors.all) {
    progress.show(entries.size(), competitors.all.size());
    // A library is asked for what it has: what is wrong with the rest is a reason and no more.
    Result<Priced> priced = price(each, arguments.as_written ? std::nullopt : standard, library);
    if (!priced) return fail(priced.failure().message);
    rejected = rejected || (priced->outcome != Outcome::Done && !library);
    Entry entry{each.label, each.loaded.name(), std::move(priced->levels), std::move(priced->reason), {}};
    if (priced->outcome == Outcome::Refused) entry.reason = "refused by a `require`: " + entry.reason;
    entries.push_back(std::move(entry));
  }
  progress.clear();
  const Verdicts verdicts = judge(std::move(entries), standard, limits, library);
  const bool none = verdicts.best_first().empty();
  return finish(arguments.json ? dump(table_json(verdicts)) : table_text(verdicts, library),
                rejected || none ? Exit::Rejected : Exit::Done);
}

Exit compare(const CompareArguments& given) {
  CompareArguments arguments = given;
  arguments.competitors.library |= arguments.competitors.schedules.words.empty();
  const Result<std::vector<Axis>> axes = read_axes(arguments.over);
  if (!axes) return fail(axes.failure().message);
  Limits limits;
  for (const bool memory : {false, true}) {
    const Result<std::optional<Rational>> limit =
        read_limit(memory ? arguments.memory : arguments.activations, memory ? "--memory" : "--activations");
    if (!limit) return fail(limit.failure().message);
    (memory ? limits.memory : limits.activations) = limit.value();
  }
  const bool sweep = !axes.value().empty();
  if (sweep && (limits.activations || limits.memory)) return fail("--activations and --memory do not go with --over");
  if (arguments.competitors.schedules.map == kBestMap && (sweep || arguments.competitors.library))
    return fail(no_best_map(sweep ? "compare --over" : "compare --library").message);
  if (!arguments.csv.empty() && !sweep) return fail("--csv writes a sweep, and there is no --over");
  if (arguments.json && arguments.csv == "-") return fail("--json and --csv - both want standard output");
  const Result<Competitors> competitors = read_competitors(arguments.competitors, axes.value());
  if (!competitors) return fail(competitors.failure().message);
  if (!arguments.csv.empty())
    if (const Result<void> checked = check_output(arguments.csv, inputs_of(arguments, competitors.value())); !checked)
      return fail(checked.failure().message);
  print_notes(competitors.value().notes);
  return sweep ? compare_over(arguments, competitors.value(), axes.value())
               : compare_levels(arguments, competitors.value(), limits);
}

}  // namespace

CLI::App* add_compare(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("compare", "schedules side by side: by formula, as ideal tables, and priced");
  const auto arguments = std::make_shared<CompareArguments>();
  arguments->competitors.schedules.add_to(*command);
  arguments->competitors.schedules.contention.add_to(*command);
  command->get_option("SCHEDULE")->required(false);
  command->add_flag("--library", arguments->competitors.library,
                    "the whole library, best first, and why the others are left out; so without any file");
  command
      ->add_option("--over", arguments->over,
                   "price every value of a parameter or a cost, as M=8..64..8 or message=0,1,2;\n"
                   "several make a grid. A name that only --cost uses will do")
      ->type_name("NAME=VALUES")
      ->allow_extra_args(false);
  command->add_option("--csv", arguments->csv, "the file to write the sweep to, - for standard output")
      ->type_name("FILE");
  command->add_option("--activations", arguments->activations, "leave out what holds more on a device")->type_name("N");
  command->add_option("--memory", arguments->memory, "leave out what takes more on a device, in the sizes of the files")
      ->type_name("N");
  command->add_flag("--as-written", arguments->as_written,
                    "each file's costs as they stand, also where its ops are smaller parts of the model");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->footer(
      "NAME=VALUE belongs to the file before it, -D NAME=VALUE to all files that have the parameter.\n\n"
      "Examples:\n"
      "  stave compare gpipe one_f_one_b interleaved V=2 interleaved V=4 -D M=16 --cost message=0.2\n"
      "  stave compare gpipe zb_h1 --over M=8..64..8 --csv sweep.csv\n"
      "  stave compare -D P=8 -D M=32 --activations 8");
  command->callback([arguments, &exit] { exit = compare(*arguments); });
  return command;
}

}  // namespace stave
