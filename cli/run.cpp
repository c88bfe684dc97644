// stave run: trains with a schedule, and holds what was measured against what the simulator predicts.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/measure/timeline_file.h"
#include "cli/pipeline.h"
#include "cli/prediction.h"
#include "cli/run/arguments.h"
#include "cli/run/gpu.h"
#include "cli/run/ranks.h"
#include "cli/run/run_text.h"
#include "cli/run/step_log.h"
#include "cli/run/trained_model.h"
#include "compiler/lower.h"
#include "compiler/verify.h"
#include "core/program_file.h"
#include "executor/checkpoint.h"
#include "executor/clock.h"
#include "executor/replicate.h"
#include "executor/run.h"
#include "scheduler/simulate.h"

namespace stave {
namespace {

/// How a run keeps time, and that in words.
struct ChosenClock {
  Clock clock = Clock::Wall;
  std::string words;
};

ChosenClock choose_clock(const RunArguments& arguments, std::uint32_t devices, const Costs& costs, const Role& role) {
  const unsigned cores = usable_cores();
  const std::string have = fmt::format("{} core{} for {} device{}", cores, cores == 1 ? "" : "s", devices,
                                       devices == 1 ? "" : "s");
  if (arguments.sleeps()) return {Clock::Wall, "wall: the ops are sleeps"};
  if (arguments.is_on_gpus()) return {Clock::Wall, "wall: events of the GPU"};
  if (arguments.clock == "wall") return {Clock::Wall, fmt::format("wall, as asked for: {}", have)};
  // Ranks of several hosts must all choose the same, whatever cores each has.
  if (arguments.clock != "virtual" && role.is_rank && arguments.ranks == 0) {
    std::string here = fmt::format("rank 0 may use {} core{}", cores, cores == 1 ? "" : "s");
    if (role.place && role.place->local_size > 1) here += fmt::format(", with {} more ranks on its host", role.place->local_size - 1);
    return {Clock::Wall, "wall: a launcher has started the ranks; " + here};
  }
  if (arguments.clock != "virtual" && cores >= 2 * devices) return {Clock::Wall, "wall: " + have};
  return {Clock::Virtual,
          fmt::format("virtual: an op lasts the CPU time of its thread, a message{} its priced time\n"
                      "          ({})",
                      costs.setups.empty() ? "" : " or a change between ops",
                      arguments.clock == "virtual"
                          ? "as asked for"
                          : have + "; wall time needs two a device to say something about the schedule")};
}

class Training {
 public:
  explicit Training(const RunArguments& arguments) : arguments_(arguments) {}

  Exit run() {
    if (Result<void> valid = check(); !valid) return fail(valid.failure().message);
    const Result<Role> role = find_role(arguments_);
    if (!role) return fail(role.failure().message);
    if (must_hand_on(arguments_)) return hand_on();
    if (role.value().launches) return launch(arguments_.ranks);
    if (const Exit exit = prepare(); exit != Exit::Done) return exit;
    if (arguments_.has_own_stage() && !built_.schedule->costs.freeze.empty())
      return fail("--stage: the library's stages freeze nothing, and the schedule does");
    if (const Result<void> checked = check_output(arguments_.timeline, inputs());
        !arguments_.timeline.empty() && !checked)
      return fail(checked.failure().message);
    if (arguments_.is_on_gpus()) {
      Result<std::unique_ptr<Gpu>> gpu = make_gpu(arguments_, program().table.devices(), role.value());
      if (!gpu) return fail(gpu.failure().message);
      gpu_ = std::move(*gpu);
    }
    if (const Result<void> made = model_.make(program(), gpu_.get()); !made) return fail(made.failure().message);
    const ChosenClock clock = choose_clock(arguments_, program().table.devices(), *built_.costs, role.value());
    const Result<std::uint64_t> memory = model_.make_reference();
    if (!memory) return fail(memory.failure().message);
    const std::int64_t known_ns = built_.costs ? ns_of_unit(built_.costs->unit) : 0;
    const double unit_ns = known_ns > 0 ? static_cast<double>(known_ns) : arguments_.unit_ms * 1e6;
    const Result<Costs> costs = costs_in_ns(*built_.program, *built_.costs, unit_ns);
    if (!costs) return fail(costs.failure().message);
    RunOptions options = options_for(costs.value());
    options.clock = clock.clock;
    options.memory_bound_bytes = memory.value();
    if (role.value().place) options.processes_here = std::max(1u, role.value().place->local_size);
    if (role.value().is_rank) {
      if (role.value().place && role.value().place->size != program().table.devices())
        return fail(fmt::format("the schedule has {} devices{}, one a rank, but {} has started {} ranks",
                                program().table.devices(),
                                arguments_.replicas > 1 ? fmt::format(" in {} replicas", arguments_.replicas) : "",
                                arguments_.ranks > 0 ? "--ranks" : role.value().place->launcher, role.value().place->size));
      Result<std::unique_ptr<JoinedRank>> joined =
          join(role.value(), arguments_, what_runs());
      if (!joined) return fail(joined.failure().message);
      rank_ = std::move(*joined);
      options.ranks = &rank_->ranks();
      options.plan_hash = rank_->plan_hash();
    }
    const bool is_first = rank_ == nullptr || rank_->ranks().rank() == 0;
    std::optional<CheckpointFolder> checkpoints;
    if (!arguments_.checkpoint.empty() && is_first) {
      Result<CheckpointFolder> ready = prepare_checkpoints(arguments_.checkpoint, arguments_.resume);
      if (!ready) return fail_all(ready.failure().message);
      checkpoints.emplace(std::move(*ready));
    }
    // Up to here the first signal ends the program.
    catch_interrupt();
    options.interrupt = interrupt_signal;
    std::optional<StepLog> log;
    if (!arguments_.log.empty() && is_first) {
      Result<StepLog> opened = StepLog::open(
          arguments_.log, arguments_.resume ? std::optional(last_checkpoint(arguments_.checkpoint)) : std::nullopt);
      if (!opened) return fail_all(opened.failure().message);
      log = std::move(*opened);
    }
    RunText text(arguments_, built_, model_, options, costs.value(), clock.words, !is_first);
    options.on_step = [&](const StepReport& step) {
      text.step(step);
      if (log) log->step(step);
      model_.compare(step, options.ranks);
    };
    options.on_warning = [](const std::string& warning) { print_error(warning + "\n"); };
    text.heading();
    Result<RunReport> report = gpu_ != nullptr ? gpu_->run(program(), model_.workload(), options)
                                               : stave::run(program(), model_.workload(), options);
    if (!report) return fail_all(report.failure().message);
    if (!model_.failure().empty()) return fail_all(model_.failure());
    // Between two ops the ranks stop where each happens to be.
    if (rank_ != nullptr && (!report->interrupted || !arguments_.checkpoint.empty())) rank_->leave();
    if (report->deadlock) {
      text.deadlock(*report->deadlock);
      return Exit::Rejected;
    }
    // The copies are alike: what is shown is the first.
    if (arguments_.replicas > 1 && !report->losses.empty())
      report->timeline = copy_of(*built_.program, report->timeline, arguments_.replicas, 0);
    Result<void> written;
    if (!arguments_.timeline.empty() && is_first && !report->losses.empty()) {
      const RecordedTimeline recorded =
          record(*built_.program, report->timeline, title_of(*built_.schedule), TimelineOrigin::Measured);
      written = write_output(arguments_.timeline, write_timeline(recorded), inputs());
    }
    text.close(*report);
    if (!written) return fail(written.failure().message);
    if (report->interrupted) return static_cast<Exit>(128 + report->signal);
    if (!text.failure().empty()) return fail(text.failure());
    if (log && !log->failure().empty()) return fail(log->failure());
    return model_.comparison() && !model_.comparison()->agrees ? Exit::Rejected : Exit::Done;
  }

 private:
  /// The program that is run: the schedule's, or several of it.
  const Program& program() const { return replicated_ ? *replicated_ : *built_.program; }

  /// What no output may be written over.
  std::vector<std::string> inputs() const {
    std::vector<std::string> result = files_of(arguments_.schedule, one_.loaded);
    result.insert(result.end(), arguments_.data.begin(), arguments_.data.end());
    result.push_back(arguments_.stage);
    return result;
  }

  Result<void> check() const {
    if (Result<void> valid = validate(arguments_.model); !valid) return valid;
    if (arguments_.checkpoint.empty() && (arguments_.resume || arguments_.checkpoint_every > 0))
      return Failure{fmt::format("{} needs the folder of the checkpoints: --checkpoint FOLDER",
                                 arguments_.resume ? "--resume" : "--checkpoint-every")};
    if (!arguments_.checkpoint.empty() && arguments_.sleeps())
      return Failure{"--checkpoint: sleeps have no state to keep"};
    const auto real = [](const std::string& path) {
      std::error_code ignored;
      return std::filesystem::weakly_canonical(path, ignored);
    };
    if (!arguments_.timeline.empty() && !arguments_.log.empty() && real(arguments_.timeline) == real(arguments_.log))
      return Failure{fmt::format("--timeline and --log both name {}", printable(arguments_.log))};
    if (arguments_.verify && arguments_.clip > 0)
      return Failure{"--verify compares gradients as they were summed, and --clip scales them: leave one of both out"};
    if (arguments_.verify && arguments_.resume)
      return Failure{"--verify compares step 1, which a resumed run does not have"};
    if (arguments_.model.tied && !arguments_.trains()) return Failure{"--tied is of the transformer"};
    if (!arguments_.stage_options.empty() && !arguments_.has_own_stage())
      return Failure{"--stage-options are for the library of --stage"};
    if (arguments_.clip > 0 && !arguments_.has_loss())
      return Failure{fmt::format("--clip: the workload {} has no gradients to scale", arguments_.workload)};
    if (arguments_.replicas > 1 && arguments_.unchecked)
      return Failure{"--unchecked runs one copy of a schedule: leave --replicas out"};
    return {};
  }

  /// 0 for never.
  std::uint64_t checkpoint_every() const {
    if (arguments_.checkpoint.empty()) return 0;
    return arguments_.checkpoint_every > 0 ? arguments_.checkpoint_every : arguments_.model.steps;
  }

  RunOptions options_for(const Costs& costs_ns) const {
    RunOptions options;
    options.cost_ns = replicate_by_node(*built_.program, node_costs(*built_.program, costs_ns), arguments_.replicas);
    options.setup_ns = setup_costs(*built_.program, costs_ns);
    if (!options.setup_ns.empty())
      options.setup_ns = replicate_by_node(*built_.program, options.setup_ns, arguments_.replicas);
    options.steps = arguments_.model.steps;
    options.measures_norm = arguments_.has_loss();
    options.clip_norm = arguments_.clip;
    options.checkpoints = arguments_.checkpoint;
    options.resumes = arguments_.resume;
    options.checkpoint_every = checkpoint_every();
    options.what = what_lasts();
    return options;
  }

  /// All that a run which goes on from a checkpoint must have alike: the model, what it is trained on, and the table, but
  /// not how long and how fast it learns, nor what is priced.
  std::string what_lasts() const {
    const ModelConfig& m = arguments_.model;
    std::string freeze;
    for (const Rational& ratio : built_.schedule->costs.freeze) freeze += fmt::format(" {}", ratio.to_double());
    Program ordered;
    ordered.table = program().table;
    ordered.sizes = program().sizes;
    return fmt::format(
        "workload {}\nstage {} {}\nwidth {}\nheads {}\nblocks {}\nsequence {}\nrows {}\ntied {}\nseed {}\nreplicas {}\n"
        "data {}\ndevices {}\nstages {}\nmicrobatches {}\nfreeze{}\ntable {:016x}\n",
        arguments_.workload, printable(arguments_.stage), printable(arguments_.stage_options), m.width, m.heads, m.blocks,
        m.sequence, m.rows, m.tied, m.seed, arguments_.replicas,
        arguments_.data.empty() ? "of the project" : fmt::format("{:016x}", model_.corpus() == nullptr ? 0 : model_.corpus()->hash()),
        program().table.devices(), built_.schedule->stages, built_.schedule->microbatches, freeze, hash_of(write_program(ordered)));
  }

  /// All that the ranks of a run must have alike.
  std::string what_runs() const {
    const ModelConfig& m = arguments_.model;
    return what_lasts() +
           fmt::format("program {:016x}\ndata {:016x}\nmessage-kib {}\nsteps {}\nwarmup {}\ndecay {}\nlearning-rate {}\n"
                       "clip {}\ncheckpoint {} {}\nverify {}\nclock {}\nbackend {} {}\n",
                       hash_of(write_program(program())), model_.corpus() == nullptr ? 0 : model_.corpus()->hash(),
                       arguments_.message_kib, m.steps, m.warmup, m.decay, m.learning_rate, arguments_.clip,
                       checkpoint_every(), arguments_.resume, arguments_.verify,
                       arguments_.clock, arguments_.backend, arguments_.precision);
  }

  /// A failure here, or of another rank that this one fails of.
  Exit fail_all(const std::string& cause) { return fail(rank_ == nullptr ? cause : rank_->fail(cause)); }

  Exit prepare() {
    const Exit exit = build_one(one_, arguments_.schedule, arguments_.unchecked ? Step::Table : Step::Priced);
    if (exit != Exit::Done) return exit;
    if (arguments_.replicas > 1) {
      Result<Program> replicated = replicate(*built_.program, arguments_.replicas);
      if (!replicated) return fail(replicated.failure().message);
      replicated_ = std::move(*replicated);
    }
    if (!arguments_.unchecked) return Exit::Done;
    Diagnostics sink;
    if (!verify_complete(*built_.schedule, *built_.table, sink)) {
      print_diagnostics(one_.loaded.sources, sink);
      return Exit::Rejected;
    }
    built_.program = lower_unchecked(*built_.schedule, *built_.table);
    return Exit::Done;
  }

  const RunArguments& arguments_;
  One one_;
  Built& built_ = one_.built;
  std::optional<Program> replicated_;
  // Before the model, whose memory lies there.
  std::unique_ptr<Gpu> gpu_;
  TrainedModel model_{arguments_, built_};
  std::unique_ptr<JoinedRank> rank_;
};

}  // namespace

CLI::App* add_run(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("run", "train with a schedule; predicted against measured");
  const auto arguments = std::make_shared<RunArguments>();
  add_run_arguments(*command, *arguments);
  command->footer("Example:\n  stave run schedules/zb_h1.sched P=4 M=8 --steps 150");
  command->callback([arguments, &exit] { exit = Training(*arguments).run(); });
  return command;
}

}  // namespace stave
