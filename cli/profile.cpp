// stave profile: what a model's stages and messages take here, or took in a timeline, as a costs file.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/measure/costs_text.h"
#include "cli/measure/read.h"
#include "cli/pipeline.h"
#include "cli/run/arguments.h"
#include "cli/run/trained_model.h"
#include "executor/profile.h"
#include "executor/run.h"

namespace stave {
namespace {

struct ProfileArguments {
  /// Of the schedule and the model; the rest of a run's is as it is by default.
  RunArguments run;
  std::string from;
  std::string output = "-";
  std::uint32_t repeats = 9;
};

std::vector<std::string> inputs_of(const ProfileArguments& arguments) {
  std::vector<std::string> result = files_of(arguments.run.schedule);
  result.insert(result.end(), arguments.run.data.begin(), arguments.run.data.end());
  if (!arguments.from.empty()) result.push_back(arguments.from);
  return result;
}

Exit write(const ProfileArguments& arguments, const MeasuredCosts& costs, const std::vector<std::string>& inputs) {
  const Result<void> written = write_output(arguments.output, costs_text(costs), inputs);
  return written ? Exit::Done : fail(written.failure().message);
}

Exit profile_timeline(const ProfileArguments& arguments) {
  if (!arguments.run.schedule.words.empty())
    return fail("--from takes the times of a timeline: leave the schedule out");
  const Result<RecordedTimeline> timeline = load_timeline(arguments.from);
  if (!timeline) return fail(timeline.failure().message);
  return write(arguments, costs_of(timeline.value()), inputs_of(arguments));
}

Exit profile_schedule(const ProfileArguments& arguments) {
  if (arguments.run.schedule.words.empty())
    return fail("profile takes a schedule, whose stages the model is cut into, or a timeline with --from");
  if (const Result<void> valid = validate(arguments.run.model); !valid) return fail(valid.failure().message);
  One one;
  if (const Exit exit = build_one(one, arguments.run.schedule, Step::Priced); exit != Exit::Done) return exit;
  // A cost is that of an op of which nothing is frozen: what is left out is a share of it.
  one.built.schedule->costs.freeze.clear();
  const Program& program = *one.built.program;
  TrainedModel model(arguments.run, one.built);
  if (const Result<void> made = model.make(program, nullptr); !made) return fail(made.failure().message);
  Result<ModelProfile> profile = profile_model(model.workload(), *model.partition(), arguments.repeats);
  if (!profile) return fail(profile.failure().message);
  TrainedModel again(arguments.run, one.built);
  if (const Result<void> made = again.make(program, nullptr); !made) return fail(made.failure().message);
  RunOptions options;
  options.clock = Clock::Virtual;
  // The first step of a run does not count.
  options.steps = arguments.repeats + 1;
  const Result<RunReport> report = run(program, again.workload(), options);
  if (!report) return fail(report.failure().message);
  take_lengths(profile.value(), program.table.ops, report.value().lengths);
  MeasuredCosts costs = costs_of(profile.value(), program, model.workload());
  const ModelConfig& m = arguments.run.model;
  costs.notes.insert(costs.notes.begin(),
                     fmt::format("a transformer, width {}, {} heads, {} rows of {} tokens a microbatch, {} parameters in {} "
                                 "stages; in a run of {} steps of {}",
                                 m.width, m.heads, m.rows, m.sequence, model.parameters(), one.built.schedule->stages,
                                 arguments.repeats, title_of(*one.built.schedule)));
  std::vector<std::string> inputs = inputs_of(arguments);
  for (std::string& each : files_of(arguments.run.schedule, one.loaded)) inputs.push_back(std::move(each));
  return write(arguments, costs, inputs);
}

Exit profile(const ProfileArguments& arguments) {
  if (const Result<void> checked = check_output(arguments.output, inputs_of(arguments)); !checked)
    return fail(checked.failure().message);
  return arguments.from.empty() ? profile_schedule(arguments) : profile_timeline(arguments);
}

}  // namespace

CLI::App* add_profile(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("profile", "a costs file of a model's stages here, or of a measured timeline");
  const auto arguments = std::make_shared<ProfileArguments>();
  arguments->run.schedule.add_to(*command);
  command->get_option("SCHEDULE")->required(false);
  command->add_option("--from", arguments->from, "a timeline to take the times from, in place of measuring")
      ->type_name("FILE");
  command->add_option("-o,--output", arguments->output, "the costs file to write, - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_option("--repeats", arguments->repeats, "steps that are run to measure, and times that every op is measured by itself")
      ->check(whole_between(1, kMostRepeats))
      ->type_name("N")
      ->capture_default_str();
  add_model_arguments(*command, arguments->run);
  command->footer(
      "Example:\n  stave profile zb_h1 P=4 M=8 -o costs.toml\n  stave simulate zb_h1 P=4 M=8 --costs costs.toml");
  command->callback([arguments, &exit] { exit = profile(*arguments); });
  return command;
}

}  // namespace stave
