// stave run: trains with a schedule, and holds what was measured against what the simulator predicts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/pipeline.h"
#include "cli/prediction.h"
#include "compiler/lower.h"
#include "compiler/verify.h"
#include "executor/clock.h"
#include "executor/data.h"
#include "executor/plan.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/config.h"
#include "executor/stage/integer.h"
#include "executor/stage/sleep.h"
#include "executor/stage/transformer.h"
#include "scheduler/analysis.h"
#include "scheduler/simulate.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

/// Words of a stage of the integer workload.
constexpr std::uint32_t kWords = 48;
constexpr std::size_t kStepsForVerdict = 100;

struct RunArguments {
  ScheduleOptions schedule;
  std::string workload = "transformer";
  std::string clock = "auto";
  std::vector<std::string> data;
  ModelConfig model;
  double unit_ms = 1;
  double memory_gib = 4;
  std::uint32_t every = 0;
  bool unchecked = false;
  bool verify = false;
  bool json = false;
};

/// The project's own texts, which are trained on where no --data is given.
std::vector<std::string> own_docs() {
  std::vector<std::string> result;
  std::error_code ignored;
  const std::filesystem::path root = STAVE_SOURCE_DIR;
  for (const std::filesystem::path& folder : {root / "docs", root}) {
    for (const auto& each : std::filesystem::directory_iterator(folder, ignored))
      if (each.path().extension() == ".md") result.push_back(each.path().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

class Training {
 public:
  explicit Training(const RunArguments& arguments) : arguments_(arguments) {}

  Exit run() {
    if (Result<void> valid = validate(arguments_.model); !valid) return fail(valid.failure().message);
    if (const Exit exit = prepare(); exit != Exit::Done) return exit;
    if (const Result<void> found = find_model(); !found) return fail(found.failure().message);
    if (const Result<void> made = make_workload(); !made) return fail(made.failure().message);
    choose_clock();
    if (const Result<void> made = make_reference(); !made) return fail(made.failure().message);
    const std::int64_t known_ns = built_.costs ? ns_of_unit(built_.costs->unit) : 0;
    const double unit_ns = known_ns > 0 ? static_cast<double>(known_ns) : arguments_.unit_ms * 1e6;
    const Result<Costs> costs = costs_in_ns(*built_.program, *built_.costs, unit_ns);
    if (!costs) return fail(costs.failure().message);
    costs_ns_ = costs.value();
    options_.cost_ns = node_costs(*built_.program, costs_ns_);
    options_.setup_ns = setup_costs(*built_.program, costs_ns_);
    options_.steps = arguments_.model.steps;
    options_.interrupt = catch_interrupt();
    options_.on_step = [this](const StepReport& step) {
      report_step(step);
      compare_with_reference(step);
    };
    say(heading());
    Result<RunReport> report = stave::run(*built_.program, *workload_, options_);
    if (!report) return fail(report.failure().message);
    if (!reference_failure_.empty()) return fail(reference_failure_);
    if (report->deadlock) {
      report_deadlock(*report->deadlock);
      return Exit::Rejected;
    }
    close(*report);
    if (report->interrupted) return static_cast<Exit>(128 + interrupt_signal());
    if (!print_failure_.empty()) return fail(print_failure_);
    return comparison_ && !comparison_->agrees ? Exit::Rejected : Exit::Done;
  }

 private:
  Exit prepare() {
    const Exit exit = build_one(one_, arguments_.schedule, arguments_.unchecked ? Step::Table : Step::Priced);
    if (exit != Exit::Done) return exit;
    if (!arguments_.unchecked) return Exit::Done;
    Diagnostics sink;
    if (!verify_complete(*built_.schedule, *built_.table, sink)) {
      print_diagnostics(one_.loaded.sources, sink);
      return Exit::Rejected;
    }
    built_.program = lower_unchecked(*built_.schedule, *built_.table);
    return Exit::Done;
  }

  FreezeRatios freeze() const {
    FreezeRatios result;
    for (const Rational& ratio : built_.schedule->costs.freeze) result.ratio.push_back(ratio.to_double());
    return result;
  }

  /// What the program trains; nothing if its ops are sleeps.
  Result<void> find_model() {
    if (arguments_.workload == "sleep") return {};
    Result<Plan> plan = make_plan(*built_.program, true);
    if (!plan && make_plan(*built_.program, false))
      return Failure{plan.failure().message + "; --workload sleep runs it without a model"};
    if (!plan) return plan.failure();
    model_ = std::move(plan->model);
    return {};
  }

  Result<void> make_workload() {
    if (arguments_.workload == "sleep") {
      workload_ = std::make_unique<SleepWorkload>();
      return {};
    }
    if (arguments_.workload == "integer") {
      workload_ = std::make_unique<IntegerWorkload>(kWords, arguments_.model.seed, freeze());
      return {};
    }
    for (const std::string& file : arguments_.data)
      if (file.empty()) return Failure{"--data: the name of the file is empty"};
    std::vector<std::string> files = arguments_.data.empty() ? own_docs() : arguments_.data;
    if (files.empty()) return Failure{"there is no text to train on; name a file with --data"};
    Result<Corpus> corpus = Corpus::load(files, arguments_.model.sequence + 1);
    if (!corpus) return corpus.failure();
    corpus_ = std::make_shared<Corpus>(std::move(*corpus));
    data_ = arguments_.data.empty() ? "the project's own docs" : printable(fmt::format("{}", fmt::join(files, ", ")));
    auto transformer = std::make_unique<Transformer>(arguments_.model, corpus_, freeze());
    if (Result<void> fits = transformer->configure(*model_); !fits) return fits;
    parameters_ = transformer->parameters();
    workload_ = std::move(transformer);
    return {};
  }

  /// The same model once more, for the sequential run that the result is held against, and the room it takes.
  Result<void> make_reference() {
    std::uint64_t bound = static_cast<std::uint64_t>(arguments_.memory_gib * (1 << 30));
    options_.memory_bound_bytes = bound;
    if (arguments_.workload == "integer")
      reference_ = std::make_unique<IntegerWorkload>(kWords, arguments_.model.seed, freeze());
    else if (arguments_.verify && arguments_.workload == "sleep")
      return Failure{"--verify: sleeps compute nothing that could be compared"};
    else if (arguments_.verify)
      reference_ = std::make_unique<Transformer>(arguments_.model, corpus_, freeze());
    if (!reference_) return {};
    if (Result<void> fits = reference_->configure(plainly(*model_)); !fits) return fits;
    const std::uint64_t bytes = reference_->parameter_bytes() + reference_buffer_bytes(*reference_, *model_);
    if (bytes >= bound)
      return Failure{fmt::format("the sequential run to compare with needs {} MiB by itself; --memory allows {} MiB",
                                 bytes >> 20, bound >> 20)};
    options_.memory_bound_bytes = bound - bytes;
    return {};
  }

  /// After the first step of a transformer, where nothing has been rounded twice yet, and after the last one of integers.
  void compare_with_reference(const StepReport& step) {
    const bool now = trains() ? step.step == 0 : step.step + 1 == options_.steps;
    if (!reference_ || !now || !reference_failure_.empty()) return;
    const Result<double> loss = run_reference(*reference_, *model_, step.step + 1);
    if (!loss)
      reference_failure_ = loss.failure().message;
    else
      comparison_ = compare_gradients(built_.program->table, *workload_, *reference_);
  }

  std::string comparison_text() const {
    const Comparison& result = *comparison_;
    if (!trains()) return fmt::format("\nresult equals the sequential run's: {}\n", result.agrees ? "yes" : "no");
    const bool exact = result.exact == result.tensors;
    return fmt::format("\ngradients of step 1 equal the sequential run's: {}: {} of {} tensors to the last bit{}\n",
                       result.agrees ? "yes" : "no", result.exact, result.tensors,
                       exact ? "" : fmt::format(", the others within {:.1e} of their largest element (at most {:.0e})",
                                                result.worst, result.must_be_exact ? 0.0 : kGradientTolerance));
  }

  void report_deadlock(const Deadlock& deadlock) {
    Diagnostics ignored;
    const bool legal = verify(*built_.schedule, *built_.table, ignored);
    const Program& program = *built_.program;
    if (arguments_.json) {
      const auto text = [&](NodeId node) {
        return program.is_message(node) ? "the " + describe(program, node) : describe(program, node);
      };
      Json blocked = Json::array();
      for (const Deadlock::Blocked& each : deadlock.blocked) {
        blocked.push_back({{"device", each.device.value},
                           {"at", text(each.node)},
                           {"needs", text(each.needs)},
                           {"waits_for_device", each.on.value}});
      }
      Json cycle = Json::array();
      for (DeviceId d : deadlock.cycle) cycle.push_back(d.value);
      const Json result = {{"schedule", built_.schedule->name},
                           {"workload", arguments_.workload},
                           {"steps", steps_},
                           {"deadlock", {{"blocked", blocked}, {"cycle", cycle}, {"table_is_legal", legal}}}};
      show(result.dump(2) + "\n");
    }
    print_error(fmt::format("error: the run stopped: devices wait for each other [deadlock]\n{}", describe(program, deadlock)));
    if (legal)
      print_error(
          "the table itself is legal: without --unchecked its messages are ordered so that it finishes\n");
  }

  void choose_clock() {
    const std::uint32_t devices = built_.program->table.devices();
    const unsigned cores = usable_cores();
    const std::string have = fmt::format("{} core{} for {} device{}", cores, cores == 1 ? "" : "s", devices,
                                         devices == 1 ? "" : "s");
    options_.clock = Clock::Wall;
    if (arguments_.workload == "sleep") {
      clock_ = "wall: the ops are sleeps";
    } else if (arguments_.clock == "wall") {
      clock_ = fmt::format("wall, as asked for: {}", have);
    } else if (arguments_.clock == "virtual" || cores < 2 * devices) {
      options_.clock = Clock::Virtual;
      clock_ = fmt::format(
          "virtual: an op lasts the CPU time of its thread, a message{} its priced time\n"
          "          ({})",
          built_.costs->setups.empty() ? "" : " or a change between ops", arguments_.clock == "virtual"
              ? "as asked for"
              : have + "; wall time needs two a device to say something about the schedule");
    } else {
      clock_ = "wall: " + have;
    }
  }

  std::string heading() {
    std::string result = title_of(*built_.schedule) + "\n";
    if (arguments_.workload == "transformer") {
      result += fmt::format("model     transformer, {} parameters in {} stage{}, {} tokens a step\n", parameters_,
                            built_.schedule->stages, built_.schedule->stages == 1 ? "" : "s", workload_->tokens_per_step());
      result += fmt::format("data      {}: {} bytes, entropy of the single bytes {:.3f} nats\n", data_, corpus_->size(),
                            corpus_->byte_entropy());
    } else {
      result += fmt::format("workload  {}\n", arguments_.workload);
    }
    result += fmt::format("clock     {}\n", clock_);
    if (arguments_.unchecked) result +=
          "order     unchecked: the table's own, each send right after its op, each receive right before the op that\n"
          "          needs it, nothing buffered; a legal table may stop so\n";
    return result + (trains() ? "\n  step  loss/nats   tokens/s   bubble\n" : "\n  step   makespan   bubble\n");
  }

  bool trains() const { return arguments_.workload == "transformer"; }

  void report_step(const StepReport& step) {
    if (arguments_.json) {
      Json entry = {{"step", step.step + 1}};
      if (trains()) {
        entry["loss"] = step.loss;
        entry["tokens_per_second"] = step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0;
      }
      entry["makespan"] = static_cast<double>(step.makespan_ns) / 1e3;
      entry["bubble"] = step.bubble;
      steps_.push_back(std::move(entry));
      return;
    }
    const std::uint64_t every = arguments_.every > 0 ? arguments_.every : std::max(1u, arguments_.model.steps / 15);
    const std::uint64_t number = step.step + 1;
    if (number != 1 && number % every != 0 && number != arguments_.model.steps) return;
    if (trains()) {
      say(fmt::format("{:6}  {:9.3f}   {:8.0f}   {:5.1f} %\n", number, step.loss,
                      step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0, 100 * step.bubble));
    } else {
      say(fmt::format("{:6}   {:8}   {:5.1f} %\n", number, time(step.makespan_ns), 100 * step.bubble));
    }
  }

  static std::string time(Ticks ns) {
    const double value = static_cast<double>(ns);
    if (value < 1e6) return fmt::format("{:.1f} us", value / 1e3);
    if (value < 1e9) return fmt::format("{:.2f} ms", value / 1e6);
    return fmt::format("{:.3f} s", value / 1e9);
  }

  static std::string difference(Ticks measured, Ticks predicted) {
    if (measured == predicted) return "equal";
    if (predicted == 0) return "-";
    const double percent = 100 * (static_cast<double>(measured) / static_cast<double>(predicted) - 1);
    // No "-0.0 %".
    return fmt::format("{:+.1f} %", std::abs(percent) < 0.05 ? 0.0 : percent);
  }

  /// Loss against the bytes' entropy, then predicted against measured.
  void close(const RunReport& report) {
    const std::vector<double>& losses = report.losses;
    double last_five = 0;
    const std::size_t last = std::min<std::size_t>(5, losses.size());
    for (std::size_t i = losses.size() - last; i < losses.size(); ++i) last_five += losses[i] / static_cast<double>(last);
    if (arguments_.json) {
      close_json(report, last_five);
      return;
    }
    if (trains() && last > 0) {
      const double entropy = corpus_->byte_entropy();
      say(fmt::format("\nmean loss of the last {} step{} {:.3f} nats", last, last == 1 ? "" : "s", last_five));
      // Fewer steps have learnt nothing that a verdict could be about.
      if (losses.size() >= kStepsForVerdict)
        say(fmt::format(", {} the {:.3f} of a model that ignores its context", last_five < entropy ? "below" : "not below",
                        entropy));
      say("\n");
    }
    if (comparison_) say(comparison_text());
    if (!report.declared.empty() && arguments_.workload != "sleep")
      say(fmt::format(
          "ops of {} were run as a wait of their cost, at {} ms a unit: only the schedule knows what they are\n",
          fmt::join(report.declared, ", "), arguments_.unit_ms));
    if (losses.empty() || built_.program->order.empty()) return;
    say(unit_text(report));
    compare(report);
  }

  /// What a unit would have to be for waits and messages to be as long beside the computing as the schedule has them;
  /// empty if they take nothing, or nearly are.
  std::string unit_text(const RunReport& report) const {
    if (!trains()) return "";
    const Table& table = built_.program->table;
    Ticks priced = 0;
    Ticks computed = 0;
    Ticks waits = 0;
    for (std::uint32_t node = 0; node < built_.program->nodes(); ++node) {
      const OpKind* kind = node < table.size() ? &table.ops.kind(table.entries[node]) : nullptr;
      const bool is_wait = kind == nullptr || kind->operation == Operation::Declared;
      if (is_wait) waits += options_.cost_ns[node];
      if (is_wait || kind->optional) continue;
      priced += options_.cost_ns[node];
      computed += report.timeline.end[node] - report.timeline.start[node];
    }
    for (Ticks setup : options_.setup_ns) waits += setup;
    if (waits == 0 || priced == 0 || computed == 0) return "";
    const double ratio = static_cast<double>(computed) / static_cast<double>(priced);
    if (ratio >= 0.5 && ratio <= 2) return "";
    return fmt::format(
        "The computing took {:.2g} of what its costs are at {} ms a unit: with --unit-ms {:.2g} waits and\n"
        "messages would be as long beside it as the schedule has them.\n",
        ratio, arguments_.unit_ms, ratio * arguments_.unit_ms);
  }

  void compare(const RunReport& report) {
    const Program& program = *built_.program;
    const bool from_costs = arguments_.workload == "sleep";
    const Timeline predicted = predict(report);
    const IdVector<DeviceId, DeviceReport> was = analyse(*built_.schedule, program, report.timeline).devices;
    const IdVector<DeviceId, DeviceReport> is = analyse(*built_.schedule, program, predicted).devices;
    say(fmt::format("\nstep {} measured, against the simulator's prediction from {}\n\n", report.timeline_step + 1,
                    from_costs ? "the costs" : "the median time of each stage's ops"));
    say(fmt::format("            {:^34}  {:^34}\n", "busy", "end of the last op"));
    say(fmt::format("            {:>11} {:>11} {:>10}  {:>11} {:>11} {:>10}\n", "measured", "predicted", "difference",
                    "measured", "predicted", "difference"));
    Ticks measured_end = 0;
    Ticks predicted_end = 0;
    for (std::uint32_t i = 0; i < was.size(); ++i) {
      const DeviceId d(i);
      say(fmt::format("device {:<4} {:>11} {:>11} {:>10}  {:>11} {:>11} {:>10}\n", i, time(was[d].busy), time(is[d].busy),
                      difference(was[d].busy, is[d].busy), time(was[d].last), time(is[d].last),
                      difference(was[d].last, is[d].last)));
      measured_end = std::max(measured_end, was[d].last);
      predicted_end = std::max(predicted_end, is[d].last);
    }
    say(fmt::format("makespan    {:>34}  {:>11} {:>11} {:>10}\n", "", time(measured_end), time(predicted_end),
                    difference(measured_end, predicted_end)));
    const double ratio = predicted_end > 0 ? static_cast<double>(measured_end) / static_cast<double>(predicted_end) : 1;
    if (options_.clock == Clock::Wall && std::abs(ratio - 1) > 0.1)
      say(from_costs ? "More than 10 % apart: the machine was busy, or the sleeps are too short for its timer; try a larger "
                       "--unit-ms.\n"
                     : "More than 10 % apart: on the wall clock threads share cores and wait to be woken; --clock virtual "
                       "leaves that out.\n");
    if (from_costs) return;
    if (options_.clock == Clock::Virtual)
      say("The ops of a stage take unlike times, by their sizes or by chance; more steps or a larger model leave less to "
          "chance.\n");
    const Timeline by_own = simulate(program, own_lengths(program, report.timeline, costs_ns_));
    const Ticks own = analyse(*built_.schedule, program, by_own).makespan;
    say(fmt::format("With each op's own time in place of the medians the prediction is {}: {}.\n", time(own),
                    difference(measured_end, own)));
  }

  void close_json(const RunReport& report, double last_five) {
    Json result = {{"schedule", built_.schedule->name},
                   {"workload", arguments_.workload},
                   {"clock", options_.clock == Clock::Virtual ? "virtual" : "wall"},
                   {"unit", "us"},
                   {"steps", steps_}};
    if (trains()) {
      result["byte_entropy"] = corpus_->byte_entropy();
      result["loss"] = last_five;
      result["loss_unit"] = "nats";
    }
    if (comparison_) {
      result["equals_sequential_run"] = comparison_->agrees;
      result["tensors"] = comparison_->tensors;
      result["tensors_exact"] = comparison_->exact;
      result["greatest_difference"] = std::isfinite(comparison_->worst) ? Json(comparison_->worst) : Json();
    }
    if (!report.losses.empty() && !built_.program->order.empty()) {
      result["measured"] = timeline_json(report.timeline);
      result["measured"]["step"] = report.timeline_step + 1;
      result["predicted"] = timeline_json(predict(report));
      if (arguments_.workload != "sleep")
        result["predicted_from_own_times"] =
            timeline_json(simulate(*built_.program, own_lengths(*built_.program, report.timeline, costs_ns_)));
    }
    result["interrupted"] = report.interrupted;
    show(result.dump(2) + "\n");
  }

  Json timeline_json(const Timeline& timeline) const {
    const auto us = [](Ticks ns) { return static_cast<double>(ns) / 1e3; };
    Json devices = Json::array();
    const Report report = analyse(*built_.schedule, *built_.program, timeline);
    for (std::uint32_t d = 0; d < report.devices.size(); ++d) {
      const DeviceReport& each = report.devices[DeviceId(d)];
      devices.push_back({{"device", d}, {"busy", us(each.busy)}, {"first", us(each.first)}, {"last", us(each.last)}});
    }
    return {{"makespan", us(report.makespan)}, {"devices", devices}};
  }

  Timeline predict(const RunReport& report) const {
    if (arguments_.workload == "sleep") return simulate(*built_.program, costs_ns_);
    return simulate(*built_.program, median_lengths(*built_.program, report.medians, costs_ns_));
  }

  void say(const std::string& text) {
    if (!arguments_.json) show(text);
  }

  /// Keeps the first reason why something could not be written.
  void show(const std::string& text) {
    if (const Result<void> printed = print(text); !printed && print_failure_.empty())
      print_failure_ = printed.failure().message;
  }

  const RunArguments& arguments_;
  One one_;
  Built& built_ = one_.built;
  std::shared_ptr<const Corpus> corpus_;
  std::optional<Partition> model_;
  std::unique_ptr<Workload> workload_;
  std::string data_;
  std::uint64_t parameters_ = 0;
  RunOptions options_;
  Costs costs_ns_;
  std::string clock_;
  Json steps_ = Json::array();
  std::string print_failure_;
  std::unique_ptr<Workload> reference_;
  std::string reference_failure_;
  std::optional<Comparison> comparison_;
};

std::string range(const Bounds& bounds) { return fmt::format("{} to {}", bounds.least, bounds.most); }

}  // namespace

CLI::App* add_run(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("run", "train with a schedule; predicted against measured");
  const auto arguments = std::make_shared<RunArguments>();
  arguments->schedule.add_to(*command);
  const auto whole = [&](const std::string& name, std::uint32_t& value, const Bounds& bounds, const std::string& what) {
    command->add_option(name, value, fmt::format("{}; {}", what, range(bounds)))
        ->check(between(bounds.least, bounds.most))
        ->type_name("N")
        ->capture_default_str();
  };
  command->add_option("--workload", arguments->workload, "what the stages compute: transformer, integer or sleep")
      ->check(CLI::IsMember({"transformer", "integer", "sleep"}))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--data", arguments->data, "a text to train on; may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  ModelConfig& model = arguments->model;
  whole("--steps", model.steps, kStepsBounds, "training steps");
  whole("--width", model.width, kWidthBounds, "width of the model");
  whole("--heads", model.heads, kHeadsBounds, "attention heads");
  whole("--blocks", model.blocks, kBlocksBounds, "transformer blocks; 0 for one a stage, or as many as\n`stages` lists layers");
  whole("--sequence", model.sequence, kSequenceBounds, "tokens of a row");
  whole("--rows", model.rows, kRowsBounds, "rows of a microbatch");
  command->add_option("--learning-rate", model.learning_rate, fmt::format("above 0, at most {}", kMostLearningRate))
      ->check(between(1e-12, kMostLearningRate))
      ->type_name("X")
      ->capture_default_str();
  command->add_option("--seed", model.seed, "of the parameters and of the choice of data")
      ->check(between(0, 18446744073709551615.0))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--clock", arguments->clock, "wall, virtual, or auto: wall with two cores a device")
      ->check(CLI::IsMember({"auto", "wall", "virtual"}))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--unit-ms", arguments->unit_ms, "what one unit of the costs is, for sleeps and messages, in ms, where a\ncosts file does not say")
      ->check(between(1e-6, 1e6))
      ->type_name("X")
      ->capture_default_str();
  command->add_option("--memory", arguments->memory_gib, "most memory for parameters and buffers, in GiB")
      ->check(between(0.001, 4096))
      ->type_name("X")
      ->capture_default_str();
  command->add_option("--every", arguments->every, "print every Nth step; 0 for about fifteen lines")
      ->check(between(0, 4294967295))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--unchecked", arguments->unchecked,
                    "run the table in its own order, each send right after its\n"
                    "op, each receive right before the op that needs it, nothing\n"
                    "buffered and no order of messages planned: also a table that\n"
                    "`check` proves may stop so; says who waits for whom");
  command->add_flag("--verify", arguments->verify,
                    "compare the gradients of step 1 with those of the same model\n"
                    "run in sequence (integers are always compared)");
  command->add_flag("--json", arguments->json, "one JSON object at the end, times in us");
  command->footer("Example:\n  stave run schedules/zb_h1.sched P=4 M=8 --steps 150");
  command->callback([arguments, &exit] { exit = Training(*arguments).run(); });
  return command;
}

}  // namespace stave
