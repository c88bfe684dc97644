// stave table: the order of a schedule, written out.
#include <memory>
#include <string>

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

Exit write_out(const TableArguments& arguments) {
  if (const Result<void> checked = check_output(arguments.output, files_of(arguments.schedule)); !checked)
    return fail(checked.failure().message);
  One one;
  const Step step = arguments.format == "program" ? Step::Priced : Step::Checked;
  if (const Exit exit = build_one(one, arguments.schedule, step); exit != Exit::Done) return exit;
  const Result<std::string> text = arguments.format == "program" ? Result<std::string>(write_program(*one.built.program))
                                   : arguments.format == "csv"   ? csv_of(one.built)
                                                                 : sched_of(one.loaded, one.built);
  if (!text) return fail(text.failure().message);
  const Result<void> written = write_output(arguments.output, text.value(), files_of(arguments.schedule, one.loaded));
  return written ? Exit::Done : fail(written.failure().message);
}

}  // namespace

CLI::App* add_table(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("table", "the order written out: PyTorch's CSV, or a .sched file");
  const auto arguments = std::make_shared<TableArguments>();
  arguments->schedule.add_to(*command);
  command->add_option("--format", arguments->format, "csv, PyTorch's compute-only table, or sched: the file with the\n"
                      "order as a table, to be priced as it stands; the values\n"
                      "and costs given here become its own; comments, `any`,\n"
                      "`fill` and `limit` are lost; or program: the order with its\n"
                      "messages, as `run` takes it where nothing compiles a schedule")
      ->check(CLI::IsMember({"csv", "sched", "program"}))
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
