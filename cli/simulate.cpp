// stave simulate: what a schedule costs, and where its time goes.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/pipeline.h"
#include "cli/report.h"

namespace stave {
namespace {

struct SimulateArguments {
  ScheduleOptions schedule;
  bool json = false;
};

Exit simulate_one(const SimulateArguments& arguments) {
  One one;
  if (const Exit exit = build_one(one, arguments.schedule, Step::Priced); exit != Exit::Done) return exit;
  const std::string text = arguments.json ? report_json(one.built).dump(2) + "\n"
                                          : title_of(*one.built.schedule) + "\n\n" + report_text(one.built);
  const Result<void> printed = print(text);
  return printed ? Exit::Done : fail(printed.failure().message);
}

}  // namespace

CLI::App* add_simulate(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("simulate", "makespan, bubble by cause, memory");
  const auto arguments = std::make_shared<SimulateArguments>();
  arguments->schedule.add_to(*command);
  command->add_flag("--json", arguments->json, "one JSON object; times in the unit of the costs");
  command->footer(
      "Example:\n  stave simulate schedules/zb_h1.sched P=8 M=24 --cost F=18522,I=18086,W=9337,message=601 --json");
  command->callback([arguments, &exit] { exit = simulate_one(*arguments); });
  return command;
}

}  // namespace stave
