// stave partition: the split of a model's layers over the stages with which a schedule ends soonest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/best_map.h"
#include "cli/command.h"
#include "cli/machine_price.h"
#include "cli/pipeline.h"
#include "compiler/expansion.h"
#include "scheduler/model_prices.h"
#include "scheduler/partition.h"
#include "visualize/window.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

struct PartitionArguments {
  ScheduleOptions schedule;
  std::uint32_t stages = 0;
  std::uint32_t tries = 1000;
  bool json = false;
};

/// Splits that are tried cost at most this many layers times stages: the dynamic program is quadratic in layers.
constexpr std::uint64_t kMostSteps = std::uint64_t(1) << 32;

class Partitioning {
 public:
  explicit Partitioning(const PartitionArguments& arguments) : arguments_(arguments) {}

  Exit run() {
    ScheduleOptions options = arguments_.schedule;
    if (options.words.empty()) {
      if (arguments_.stages == 0) return fail("--stages N or a schedule says how many stages there are");
      options.words = {"one_f_one_b", fmt::format("P={}", arguments_.stages), fmt::format("M={}", 4 * arguments_.stages)};
    }
    if (options.model.empty() || options.cluster.empty())
      return fail("a split needs --model and --cluster: what is shared out, and what a layer takes");
    if (!options.costs.empty()) return fail("a split is priced by what its layers take, and --costs says what whole stages take");
    if (options.map == kBestMap) return fail(no_best_map("partition").message);
    const Result<std::vector<ScheduleArgument>> schedules = schedule_arguments(options, false);
    if (!schedules) return fail(schedules.failure().message);
    const Result<std::vector<Argument>> parameters = read_arguments(schedules.value()[0].parameters);
    if (!parameters) return fail(parameters.failure().message);
    given_ = parameters.value();
    Result<Loaded> loaded = load(schedules.value()[0].file, options);
    if (!loaded) return fail(loaded.failure().message);
    loaded_ = std::move(*loaded);
    print_diagnostics(loaded_.sources, loaded_.sink);
    if (!loaded_.ok()) return Exit::Rejected;
    return search();
  }

 private:
  Exit search() {
    // Without prices: what the schedule counts, and where its stages are.
    Diagnostics sink;
    Expanded bare = expand(*loaded_.compiled, given_, sink);
    if (bare.outcome == Outcome::WrongArgument) return fail(bare.failure.message);
    print_diagnostics(loaded_.sources, sink);
    if (bare.outcome != Outcome::Done) return Exit::Rejected;
    const Schedule& schedule = *bare.schedule;
    if (arguments_.stages > 0 && arguments_.stages != schedule.stages)
      return fail(fmt::format("--stages is {}, and schedule `{}` has {}", arguments_.stages, schedule.name, schedule.stages));
    const World& world = schedule.expansion->world;
    if (world.routes.given()) return fail("a schedule with a `route` holds the model in several chains: give their sizes by hand");
    const Model& model = loaded_.machine->model();
    if (model.blocks() < schedule.stages)
      return fail(fmt::format("{} layers are too few for {} stages", model.blocks(), schedule.stages));
    if (std::uint64_t(model.blocks()) * model.blocks() * schedule.stages > kMostSteps)
      return fail(fmt::format("{} layers over {} stages are too many to share out", model.blocks(), schedule.stages));
    std::uint64_t needed = 0;
    for (std::uint32_t d = 0; d < schedule.devices; ++d)
      needed = std::max<std::uint64_t>(needed, loaded_.machine->accelerator(d) + model.parallel.width());
    PartitionProblem problem;
    if (needed <= loaded_.machine->cluster().size) find_loads(problem, schedule);
    problem.layers = static_cast<std::uint32_t>(model.blocks());
    problem.stages = schedule.stages;
    problem.most_tries = arguments_.tries;
    problem.makespan = [this](const Split& split) { return price(split); };
    if (problem.load.empty()) problem.load.assign(schedule.stages, std::vector<double>(problem.layers, 1));
    const PartitionResult result = partition(problem);
    if (!result.best) {
      price(result.least_slowest.layers);
      print_diagnostics(loaded_.sources, last_);
      return Exit::Rejected;
    }
    const Result<void> printed = print(arguments_.json ? json(result).dump(2) + "\n" : text(result, schedule));
    return printed ? Exit::Done : fail(printed.failure().message);
  }

  void find_loads(PartitionProblem& problem, const Schedule& schedule) const {
    const Model& model = loaded_.machine->model();
    const Placement& placement = schedule.expansion->world.placement;
    const auto seconds = [&](const Layer& layer, const Site& site) {
      const LayerTimes times = layer_times(model, layer, microbatch_tokens(model), site);
      return times.forward + times.input + times.weight + times.again;
    };
    for (std::uint32_t s = 0; s < schedule.stages; ++s) {
      const Site site = loaded_.machine->site(placement.of(s, 0));
      std::vector<double> loads;
      for (std::size_t i = 0; i < model.blocks(); ++i) loads.push_back(seconds(model.layers[model.front() + i], site));
      problem.load.push_back(std::move(loads));
      if (s == 0)
        for (std::size_t i = 0; i < model.front(); ++i) problem.first_load += seconds(model.layers[i], site);
      if (s + 1 == schedule.stages)
        for (std::size_t i = model.layers.size() - model.back(); i < model.layers.size(); ++i)
          problem.last_load += seconds(model.layers[i], site);
    }
  }

  /// Microseconds of the schedule with a split. None if it is refused; why is in `last_`.
  std::optional<double> price(const Split& split) {
    last_ = {};
    return makespan_on(loaded_.machine->with(split), *loaded_.compiled, given_, last_);
  }

  std::string text(const PartitionResult& result, const Schedule& schedule) const {
    const Model& model = loaded_.machine->model();
    std::string lines = fmt::format("{} layers of {} over the {} stages of {}\n\n", model.blocks(),
                                    model.name.empty() ? "the model" : model.name, schedule.stages, title_of(schedule));
    std::size_t width = 6;
    const auto layers = [](const PricedSplit& split) { return fmt::format("{}", fmt::join(split.layers, " ")); };
    for (const PricedSplit* each : {&result.uniform, &result.least_slowest, &*result.best})
      width = std::max(width, layers(*each).size());
    lines += fmt::format("{:<22}  {:<{}}  {:>16}  {:>20}\n", "split", "layers", width, "makespan", "slowest stage");
    const auto line = [&](const char* name, const PricedSplit& split) {
      lines += fmt::format("{:<22}  {:<{}}  {:>16}  {:>20}{}\n", name, layers(split), width,
                           split.makespan ? in_units(*split.makespan, 1) + " us" : "does not fit",
                           in_units(split.slowest * 1e6, 1) + " us", longer(split, *result.best));
    };
    line("uniform", result.uniform);
    line("least slowest stage", result.least_slowest);
    line("best found", *result.best);
    return lines + fmt::format("\n{} splits tried\n", result.tried);
  }

  static std::string longer(const PricedSplit& split, const PricedSplit& best) {
    if (!split.makespan || *split.makespan <= *best.makespan) return "";
    return fmt::format("   {:.1f} % longer than the best", 100 * (*split.makespan / *best.makespan - 1));
  }

  static Json json(const PartitionResult& result) {
    const auto one = [](const PricedSplit& split) {
      Json entry = {{"layers", split.layers}, {"slowest_stage", std::round(split.slowest * 1e9) / 1e3}};
      if (split.makespan) entry["makespan"] = *split.makespan;
      return entry;
    };
    return {{"unit", "us"},
            {"best", one(*result.best)},
            {"uniform", one(result.uniform)},
            {"least_slowest", one(result.least_slowest)},
            {"tried", result.tried}};
  }

  const PartitionArguments& arguments_;
  std::vector<Argument> given_;
  Loaded loaded_;
  Diagnostics last_;
};

}  // namespace

CLI::App* add_partition(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("partition", "the best split of a model's layers over the stages");
  const auto arguments = std::make_shared<PartitionArguments>();
  arguments->schedule.add_to(*command);
  command->get_option("SCHEDULE")->required(false);
  command->add_option("--stages", arguments->stages, "how many stages, where no schedule is named: then it is 1F1B with\n"
                      "four microbatches a stage")
      ->check(whole_between(1, 4096))
      ->type_name("N");
  command->add_option("--tries", arguments->tries, "most splits that are priced")
      ->check(whole_between(1, 1000000))
      ->type_name("N");
  command->add_flag("--json", arguments->json, "one JSON object; times in microseconds");
  command->footer("Example:\n  stave partition zb_h1 P=8 M=32 --model llama3_8b --cluster h100_node");
  command->callback([arguments, &exit] { exit = Partitioning(*arguments).run(); });
  return command;
}

}  // namespace stave
