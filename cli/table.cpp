// stave table: the order of a schedule, written out.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/pipeline.h"
#include "cli/write_table.h"
#include "core/program_file.h"

namespace stave {
namespace {

struct TableArguments {
  ScheduleOptions schedule;
  std::string format = "csv";
  std::string output = "-";
};

/// The one table of formats.
struct TableFormat {
  std::string_view name;
  std::string_view words;
  /// How far a schedule must come.
  Step step = Step::Checked;
  Result<std::string> (*write)(One& one) = nullptr;
};

constexpr TableFormat kTableFormats[] = {
    {"csv", "PyTorch's compute-only table", Step::Checked, [](One& one) { return csv_of(one.built); }},
    {"sched",
     "the file with the order as a\ntable, to be priced as it stands; the values and costs given\nhere become its own; comments, "
     "`any`, `fill` and `limit` are\nlost",
     Step::Checked, [](One& one) { return Result<std::string>(sched_of(one.loaded, one.built)); }},
    {"program", "the order with its\nmessages, for `stave-run` where nothing compiles a schedule", Step::Priced,
     [](One& one) { return Result<std::string>(write_program(*one.built.program)); }},
};

Exit write_out(const TableArguments& arguments) {
  if (const Result<void> checked = check_output(arguments.output, files_of(arguments.schedule)); !checked)
    return fail(checked.failure().message);
  const TableFormat& format = *std::ranges::find(kTableFormats, arguments.format, &TableFormat::name);
  One one;
  if (const Exit exit = build_one(one, arguments.schedule, format.step); exit != Exit::Done) return exit;
  const Result<std::string> text = format.write(one);
  if (!text) return fail(text.failure().message);
  const Result<void> written = write_output(arguments.output, text.value(), files_of(arguments.schedule, one.loaded));
  return written ? Exit::Done : fail(written.failure().message);
}

}  // namespace

CLI::App* add_table(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("table", "the order written out: PyTorch's CSV, or a .sched file");
  const auto arguments = std::make_shared<TableArguments>();
  arguments->schedule.add_to(*command);
  std::vector<std::string> names;
  std::string help;
  for (const TableFormat& format : kTableFormats) {
    names.emplace_back(format.name);
    help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", format.name, format.words);
  }
  command->add_option("--format", arguments->format, help)
      ->check(CLI::IsMember(names))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "the file to write, - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command->footer("Example:\n  stave table schedules/zb_h1.sched P=4 M=8 -o zb_h1.csv");
  command->callback([arguments, &exit] { exit = write_out(*arguments); });
  return command;
}

}  // namespace stave
