// stave simulate: what a schedule costs, and where its time goes.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/critical.h"
#include "cli/measure/timeline_file.h"
#include "cli/memory.h"
#include "cli/pipeline.h"
#include "cli/report.h"
#include "cli/trials.h"
#include "cli/what_if.h"

namespace stave {
namespace {

struct SimulateArguments {
  ScheduleOptions schedule;
  std::vector<std::string> what_if;
  TrialOptions trials;
  bool slack = false;
  bool memory = false;
  std::string timeline;
  bool json = false;
};

/// The parameters of a command line that has been read before.
Result<std::vector<Argument>> arguments_of(const ScheduleOptions& options) {
  const Result<std::vector<ScheduleArgument>> schedules = schedule_arguments(options, false);
  if (!schedules) return schedules.failure();
  return read_arguments(schedules.value()[0].parameters);
}

Exit simulate_one(const SimulateArguments& arguments) {
  if (const Result<void> checked = check_output(arguments.timeline, files_of(arguments.schedule));
      !arguments.timeline.empty() && !checked)
    return fail(checked.failure().message);
  One one;
  if (const Exit exit = build_one(one, arguments.schedule, Step::Priced); exit != Exit::Done) return exit;
  if (arguments.slack && one.loaded.rules.buffered_bytes)
    return fail("--slack: by how much an op could start later is not known with --buffered");
  if (arguments.memory && !one.built.report->peak_memory)
    return fail("--memory: the sizes of memory have no common denominator that fits");
  std::vector<WhatIf> changes;
  if (!arguments.what_if.empty()) {
    const Result<std::vector<Argument>> parameters = arguments_of(arguments.schedule);
    if (!parameters) return fail(parameters.failure().message);
    Result<std::vector<WhatIf>> priced = what_if(one, parameters.value(), arguments.what_if);
    if (!priced) return fail(priced.failure().message);
    changes = std::move(*priced);
  }
  const Result<std::vector<double>> trials = try_by_chance(one, arguments.trials);
  if (!trials) return fail(trials.failure().message);
  if (!arguments.timeline.empty()) {
    const RecordedTimeline timeline = record(*one.built.program, *one.built.timeline, title_of(*one.built.schedule),
                                             TimelineOrigin::Simulated);
    const Result<void> written = write_output(arguments.timeline, write_timeline(timeline),
                                              files_of(arguments.schedule, one.loaded));
    if (!written) return fail(written.failure().message);
    // Standard output has the timeline and nothing else then.
    if (arguments.timeline == "-") return Exit::Done;
  }
  std::string text;
  if (arguments.json) {
    nlohmann::ordered_json json = report_json(one.built);
    if (one.loaded.machine != nullptr && !one.loaded.machine->map().empty()) json["map"] = one.loaded.machine->map();
    if (!changes.empty()) json["what_if"] = what_if_json(one.built, changes);
    if (!trials.value().empty()) json["trials"] = trials_json(one.built, arguments.trials, trials.value());
    if (arguments.slack) add_slack(json, one.built);
    if (arguments.memory) add_memory(json, one.built);
    text = json.dump(2) + "\n";
  } else {
    text = title_of(*one.built.schedule) + "\n\n" + report_text(one.built);
    if (!changes.empty()) text += what_if_text(one.built, changes);
    if (!trials.value().empty()) text += trials_text(one.built, arguments.trials, trials.value());
    if (arguments.memory) text += memory_text(one.built);
    if (arguments.slack) text += slack_text(one.built);
  }
  const Result<void> printed = print(text);
  return printed ? Exit::Done : fail(printed.failure().message);
}

}  // namespace

CLI::App* add_simulate(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("simulate", "makespan, bound, bubble by cause, critical path, memory");
  const auto arguments = std::make_shared<SimulateArguments>();
  arguments->schedule.add_to(*command);
  arguments->schedule.contention.add_to(*command);
  command
      ->add_option("--what-if", arguments->what_if,
                   "the same order under other costs: NAME=VALUE or NAME*FACTOR, as link*2 or W=0;\n"
                   "several with commas between them; may be given more than once, each by itself")
      ->type_name("CHANGE")
      ->allow_extra_args(false);
  arguments->trials.add_to(*command);
  command->add_flag("--slack", arguments->slack, "start, end and slack of every op");
  command->add_flag("--memory", arguments->memory, "what each device holds at its peak, and over time");
  command->add_option("--timeline", arguments->timeline, "a file to write: start and end of every op and message, as\n"
                      "JSON, for `stave diff`")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "one JSON object; times in the unit of the costs");
  command->footer(
      "Example:\n  stave simulate schedules/zb_h1.sched P=8 M=24 --cost F=18522,I=18086,W=9337,message=601 --json");
  command->callback([arguments, &exit] { exit = simulate_one(*arguments); });
  return command;
}

}  // namespace stave
