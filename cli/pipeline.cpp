#include "cli/pipeline.h"

#include "cli/best_map.h"
#include "cli/library.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/csv.h"
#include "compiler/expansion.h"
#include "compiler/expect.h"
#include "compiler/lower.h"
#include "compiler/render.h"
#include "compiler/verify.h"
#include "compiler/weights.h"
#include "scheduler/cluster.h"
#include "scheduler/contention/machine.h"
#include "scheduler/costs_file.h"
#include "scheduler/order/order.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"
#include "scheduler/toml.h"

namespace stave {
namespace {

void try_all_expects(Built& into, const Sources& sources) {
  const ReportMetrics metrics(*into.report, MadeFrom{*into.schedule, *into.table, *into.costs});
  for (ExpectResult& result : try_expects(*into.schedule, metrics, into.expects)) {
    switch (result.outcome) {
      case ExpectOutcome::Holds:
        ++into.expect_counts.hold;
        break;
      case ExpectOutcome::Fails:
        ++into.expect_counts.fail;
        into.expects.add(std::move(*result.failure));
        break;
      case ExpectOutcome::DoesNotApply:
        ++into.expect_counts.do_not_apply;
        break;
      case ExpectOutcome::Skipped: {
        ++into.expect_counts.skipped;
        const LineColumn place = sources.place(result.span.source, result.span.begin);
        into.notes.push_back(
            fmt::format("{}:{}: this `expect` is skipped: {}", sources[result.span.source].name, place.line, result.note));
        break;
      }
      case ExpectOutcome::Error:
        break;
    }
  }
}

void skip_all_expects(Built& into, const Loaded& loaded) {
  if (into.schedule->expansion == nullptr) return;
  into.expect_counts.skipped = static_cast<std::uint32_t>(into.schedule->expansion->code->expects.size());
  if (into.expect_counts.skipped > 0)
    into.notes.push_back(fmt::format("{}: each `expect` is skipped: closed forms know of nothing that messages contend for",
                                     loaded.name()));
}

/// What is wrong with the command line's costs.
Failure wrong_costs(const Sources& sources, const Diagnostics& wrong) {
  return Failure{"the costs of --cost cannot be used\n" + render_snippets(sources, wrong, {false, terminal_width()})};
}

/// The prices that the options name; what is wrong with them is said in the sink, and nothing is compiled then.
Result<void> read_prices(Loaded& into, const ScheduleOptions& options) {
  const bool machine = !options.cluster.empty() || !options.model.empty();
  if (machine) {
    Result<Machine> read = read_machine(into.sources, options, into.sink);
    if (!read) return read.failure();
    if (read->cluster != nullptr && read->model != nullptr)
      into.machine = std::make_shared<ModelPrices>(read->model, read->cluster, read->map);
    into.prices = into.machine;
  } else if (!options.map.empty()) {
    return Failure{"--map says where devices sit on a cluster: it comes with --cluster"};
  }
  if (!options.costs.empty()) {
    const Result<SourceId> source = read_toml_source(into.sources, options.costs);
    if (!source) return source.failure();
    into.prices = read_costs_file(into.sources, source.value(), into.sink, into.prices);
  }
  if (into.sink.has_errors()) into.compiled.reset();
  return {};
}

}  // namespace

Result<Outcome> rejected(const Loaded& loaded, const Diagnostics& wrong) {
  // With a map it is the map that does not fit.
  if (loaded.machine != nullptr && !loaded.machine->map().empty())
    for (const Diagnostic& each : wrong.all())
      if (each.kind == "cluster-small") return Failure{each.message};
  if (loaded.costs)
    for (const Diagnostic& each : wrong.all())
      if (each.primary.span.valid() && each.primary.span.source == *loaded.costs)
        return wrong_costs(loaded.sources, wrong);
  return Outcome::Rejected;
}

Result<Machine> read_machine(Sources& sources, const ScheduleOptions& options, Diagnostics& sink) {
  if (options.cluster.empty()) return Failure{"--model comes with --cluster: what a model takes depends on the machine"};
  if (options.model.empty()) return Failure{"--cluster comes with --model: a machine has no costs without what it works on"};
  Machine result;
  Result<std::vector<std::uint32_t>> map = read_map(options.map == kBestMap ? "" : options.map);
  if (!map) return map.failure();
  result.map = std::move(*map);
  const auto source_of = [&](const std::string& word, LibraryPart part) -> Result<SourceId> {
    const Result<std::string> file = find_in_library(word, part);
    if (!file) return file.failure();
    return read_toml_source(sources, file.value());
  };
  const Result<SourceId> cluster = source_of(options.cluster, LibraryPart::Clusters);
  if (!cluster) return cluster.failure();
  const Result<SourceId> model = source_of(options.model, LibraryPart::Models);
  if (!model) return model.failure();
  if (std::optional<Cluster> read = read_cluster(sources, cluster.value(), sink))
    result.cluster = std::make_shared<const Cluster>(std::move(*read));
  if (std::optional<Model> read = read_model(sources, model.value(), sink))
    result.model = std::make_shared<const Model>(std::move(*read));
  return result;
}

Result<Loaded> load(const std::string& file, const ScheduleOptions& options) {
  Loaded result;
  result.file = file;
  const Result<SourceId> source = read_source(result.sources, file);
  if (!source) return source.failure();
  result.source = source.value();
  const Result<SimulationRules> rules = options.contention.rules();
  if (!rules) return rules.failure();
  result.rules = rules.value();
  const Result<std::optional<Rational>> launch = options.contention.launch_cost();
  if (!launch) return launch.failure();
  result.launch = launch.value();
  if (result.rules.buffered_bytes && options.cluster.empty())
    return Failure{"--buffered comes with --cluster and --model: without, a message has no bytes"};
  if (!options.contention.links.empty() && options.cluster.empty())
    return Failure{"--links comes with --cluster and --model: without, no link is shared"};
  result.is_csv = looks_like_csv(file, result.sources[result.source].text);
  result.compiled = result.is_csv ? compile_csv(result.sources, result.source, result.sink)
                                  : compile(result.sources, result.source, result.sink);
  if (const Result<void> read = read_prices(result, options); !read) return read.failure();
  if (!result.compiled || options.cost.empty()) return result;
  if (const Result<void> replaced = replace_costs(result, options.cost); !replaced) return replaced.failure();
  return result;
}

Result<void> replace_costs(Loaded& loaded, const std::string& cost) {
  Diagnostics wrong;
  const SourceId argument = loaded.sources.add("--cost", cost);
  const std::optional<Compiled> compiled = override_costs(*loaded.compiled, loaded.sources, argument, wrong);
  if (!compiled) return wrong_costs(loaded.sources, wrong);
  loaded.compiled = compiled;
  loaded.costs = argument;
  return {};
}

Result<std::vector<Argument>> read_arguments(const std::vector<NamedText>& parameters) {
  std::vector<Argument> result;
  for (const NamedText& each : parameters) {
    Result<Argument> argument = read_argument(each.name + "=" + each.value);
    if (!argument) return argument.failure();
    result.push_back(std::move(*argument));
  }
  return result;
}

Result<Outcome> build(Built& into, const Loaded& loaded, const std::vector<Argument>& arguments, Step step) {
  const Result<Outcome> outcome = expand_into(into, loaded, arguments);
  return outcome && outcome.value() == Outcome::Done ? build_expanded(into, loaded, step) : outcome;
}

Result<Outcome> expand_into(Built& into, const Loaded& loaded, const std::vector<Argument>& arguments) {
  if (!loaded.ok()) return Outcome::Rejected;
  Expanded expanded = expand(*loaded.compiled, arguments, into.sink, loaded.prices.get());
  if (expanded.outcome == Outcome::WrongArgument) return expanded.failure;
  if (expanded.outcome == Outcome::Rejected) return rejected(loaded, into.sink);
  if (expanded.outcome != Outcome::Done) return expanded.outcome;
  into.schedule = std::move(expanded.schedule);
  return Outcome::Done;
}

Result<Outcome> build_expanded(Built& into, const Loaded& loaded, Step step) {
  if (loaded.launch)
    if (const Result<void> added = add_launch(*into.schedule, *loaded.launch); !added) return added.failure();
  into.costs = make_costs(*into.schedule, into.sink);
  if (!into.costs) return rejected(loaded, into.sink);
  into.table = order(*into.schedule, *into.costs, into.sink);
  if (!into.table || into.sink.has_errors()) return Outcome::Rejected;
  if (step == Step::Table) return Outcome::Done;

  if (!verify_complete(*into.schedule, *into.table, into.sink)) return Outcome::Rejected;
  const TableNeeds needs(*into.schedule, *into.table);
  const std::optional<RunOrder> proof = verify_order(*into.schedule, *into.table, needs, into.sink);
  if (!proof) return Outcome::Rejected;
  if (!verify_weights(*into.schedule, *into.table, weight_versions(*into.schedule, *into.table, needs), into.sink))
    return Outcome::Rejected;
  if (step == Step::Checked) return Outcome::Done;
  const Starts starts = start_times(*into.table, needs, *proof, *into.costs);
  into.program = lower(*into.schedule, *into.table, needs, starts);
  if (!verify(*into.program, *into.schedule, into.sink)) return Outcome::Rejected;
  into.contends = contends(loaded.rules, loaded.machine.get(), *into.program, *into.costs);
  if (into.contends && !fits_in_ticks(loaded.machine.get(), *into.program, *into.costs, 1))
    return Failure{"with the slow-downs of the cluster, all ops and messages together pass 2^61 ticks"};
  into.timeline = into.contends ? simulate_by(loaded.rules, loaded.machine.get(), *into.program, *into.costs)
                                : simulate(*into.program, *into.costs);
  if (into.contends)
    into.turns = Turns(*into.program, *into.timeline, *into.costs, loaded.rules, loaded.machine.get());
  into.report = analyse(*into.schedule, *into.program, *into.timeline, &into.sink);
  if (into.sink.has_errors()) return Outcome::Rejected;
  if (loaded.machine != nullptr && into.report->peak_memory &&
      !loaded.machine->verify(*into.schedule, *into.program, *into.timeline, *into.report->peak_memory, into.sink))
    return Outcome::Rejected;
  if (into.contends)
    skip_all_expects(into, loaded);
  else
    try_all_expects(into, loaded.sources);
  return Outcome::Done;
}

Exit build_one(One& into, const ScheduleOptions& options, Step step) {
  const Result<std::vector<ScheduleArgument>> schedules = schedule_arguments(options, false);
  if (!schedules) return fail(schedules.failure().message);
  const ScheduleArgument& schedule = schedules.value()[0];
  const Result<std::vector<Argument>> arguments = read_arguments(schedule.parameters);
  if (!arguments) return fail(arguments.failure().message);
  Result<Loaded> loaded = load(schedule.file, options);
  if (!loaded) return fail(loaded.failure().message);
  into.loaded = std::move(*loaded);
  print_diagnostics(into.loaded.sources, into.loaded.sink);
  if (options.map == kBestMap) {
    const Result<std::string> found = place_best(into.loaded, arguments.value());
    if (!found) return fail(found.failure().message);
    if (!found.value().empty()) print_error(fmt::format("note: {}\n", found.value()));
  }
  const Result<Outcome> outcome = build(into.built, into.loaded, arguments.value(), step);
  if (!outcome) return fail(outcome.failure().message);
  print_diagnostics(into.loaded.sources, into.built.sink);
  print_diagnostics(into.loaded.sources, as_warnings(into.built.expects));
  return outcome.value() == Outcome::Done ? Exit::Done : Exit::Rejected;
}

Diagnostics as_warnings(const Diagnostics& diagnostics) {
  Diagnostics result;
  for (Diagnostic each : diagnostics.all()) {
    each.severity = Severity::Warning;
    result.add(std::move(each));
  }
  return result;
}

void print_diagnostics(const Sources& sources, const Diagnostics& diagnostics) {
  print_error(render_snippets(sources, diagnostics, {wants_colour(Stream::Err), terminal_width()}));
}

std::vector<std::string> files_of(const ScheduleOptions& options) {
  std::vector<std::string> result;
  const Result<std::vector<ScheduleArgument>> schedules = schedule_arguments(options, true);
  if (!schedules) return result;
  for (const ScheduleArgument& each : schedules.value()) result.push_back(each.file);
  const auto add = [&](const std::string& word, LibraryPart part) {
    if (const Result<std::string> file = find_in_library(word, part); file.ok() && !word.empty()) result.push_back(file.value());
  };
  add(options.cluster, LibraryPart::Clusters);
  add(options.model, LibraryPart::Models);
  if (!options.costs.empty()) result.push_back(options.costs);
  return result;
}

std::vector<std::string> files_of(const ScheduleOptions& options, const Loaded& loaded) {
  std::vector<std::string> result = files_of(options);
  if (!loaded.compiled) return result;
  for (const SourceId each : loaded.compiled->used_files()) result.push_back(loaded.sources[each].name);
  return result;
}

std::string ExpectCounts::text() const {
  if (hold + fail + do_not_apply + skipped == 0) return "no expectations";
  std::string result = fmt::format("{} expectation{}", hold, hold == 1 ? " holds" : "s hold");
  if (fail > 0) result += fmt::format(", {} false", fail);
  if (do_not_apply > 0) result += fmt::format(", {} {} not apply", do_not_apply, do_not_apply == 1 ? "does" : "do");
  if (skipped > 0) result += fmt::format(", {} skipped", skipped);
  return result;
}

std::vector<NamedText> parameters_of(const Schedule& schedule) {
  std::vector<NamedText> result;
  if (!schedule.expansion) return result;
  for (const ParameterValue& each : schedule.expansion->parameters) result.push_back({each.name, each.text});
  return result;
}

std::string title_of(const Schedule& schedule) {
  std::string result = schedule.name;
  for (const NamedText& each : parameters_of(schedule)) result += fmt::format(" {}={}", each.name, each.value);
  return result;
}

}  // namespace stave
