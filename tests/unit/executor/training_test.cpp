// What goes around the ops of a step: clipping, checkpoints, replicas of a whole schedule.
#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "executor/checkpoint.h"
#include "executor/plan.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/replicate.h"
#include "executor/run.h"
#include "executor/stage/frozen_time.h"
#include "executor/stage/integer.h"
#include "executor/stage/transformer.h"
#include "make_program.h"

namespace stave {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Corpus> text() {
  std::vector<std::uint8_t> bytes;
  RandomStream random(7);
  for (int i = 0; i < 5000; ++i) bytes.push_back(static_cast<std::uint8_t>('a' + random.below(26)));
  return std::make_shared<Corpus>(bytes);
}

ModelConfig small() {
  ModelConfig config;
  config.width = 16;
  config.heads = 2;
  config.sequence = 8;
  config.steps = 6;
  return config;
}

/// A folder of its own, gone with the test.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("stave_checkpoint_" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

struct Steps {
  std::vector<double> losses;
  std::vector<double> norms;
};

Result<Steps> train(const Program& program, RunOptions options, Transformer& model) {
  Steps result;
  options.clock = Clock::Virtual;
  options.measures_norm = true;
  options.on_step = [&](const StepReport& step) {
    result.losses.push_back(step.loss);
    result.norms.push_back(step.gradient_norm);
  };
  const Result<RunReport> report = run(program, model, options);
  if (!report) return report.failure();
  return result;
}

Steps train(const Program& program, const RunOptions& options) {
  Transformer model(small(), text());
  Result<Steps> steps = train(program, options, model);
  REQUIRE_MESSAGE(steps, steps.failure().message);
  return *steps;
}

TEST_CASE("the norm is that of all gradients, whatever the schedule; clipping changes what follows") {
  RunOptions options;
  options.steps = 1;
  Transformer model(small(), text());
  const Program p = test::make(test::one_f_one_b(3, 4), 3, 4);
  Result<Steps> one = train(p, options, model);
  REQUIRE(one);
  double squares = 0;
  for (std::uint32_t s = 0; s < 3; ++s)
    for (const ParameterView& each : model.stage(StageId(s))->parameters())
      for (std::size_t i = 0; i < each.count; ++i)
        squares += std::pow(static_cast<double>(static_cast<const float*>(each.gradient)[i]), 2);
  CHECK(one->norms[0] == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
  CHECK(train(test::make(test::gpipe(3, 4), 3, 4), options).norms[0] == one->norms[0]);

  options.steps = 3;
  const Steps free = train(p, options);
  options.clip_norm = 1e9;
  CHECK(train(p, options).losses == free.losses);
  // Adam does not see the size of gradients, but for what it adds to the root: so clip to where that matters.
  options.clip_norm = 1e-8;
  const Steps clipped = train(p, options);
  CHECK(clipped.losses[0] == free.losses[0]);
  CHECK(clipped.norms[0] == free.norms[0]);
  CHECK(clipped.losses[2] > free.losses[2]);
}

TEST_CASE("a clipped gradient has the norm asked for") {
  const Program p = test::make(test::one_f_one_b(2, 2), 2, 2);
  Transformer model(small(), text());
  RunOptions options;
  options.steps = 1;
  options.clip_norm = 0.25;
  REQUIRE(train(p, options, model));
  double squares = 0;
  for (std::uint32_t s = 0; s < 2; ++s)
    for (const ParameterView& each : model.stage(StageId(s))->parameters())
      for (std::size_t i = 0; i < each.count; ++i)
        squares += std::pow(static_cast<double>(static_cast<const float*>(each.gradient)[i]), 2);
  CHECK(std::sqrt(squares) == doctest::Approx(0.25).epsilon(1e-6));
}

TEST_CASE("a run goes on from a checkpoint bit for bit; the two last ones are kept") {
  const Folder folder;
  const Program p = test::make(test::split_1f1b(3, 4, false), 3, 4);
  RunOptions options;
  options.steps = 6;
  const Steps whole = train(p, options);
  options.checkpoints = folder.path;
  options.checkpoint_every = 2;
  options.what = "width 16\nseed 1\n";
  CHECK(train(p, options).losses == whole.losses);
  CHECK(!fs::exists(folder.path / "step-00000002"));
  CHECK(fs::exists(folder.path / "step-00000004" / "manifest"));
  fs::remove_all(folder.path / "step-00000006");
  options.resumes = true;
  CHECK(train(p, options).losses == std::vector(whole.losses.begin() + 4, whole.losses.end()));
  for (const auto& each : fs::directory_iterator(folder.path)) CHECK(each.path().filename().string()[0] == 's');
}

TEST_CASE("a checkpoint that is cut short, changed, missing or of another run is refused") {
  const Folder folder;
  const Program p = test::make(test::one_f_one_b(2, 2), 2, 2);
  RunOptions options;
  options.steps = 2;
  options.checkpoints = folder.path;
  options.checkpoint_every = 2;
  options.what = "width 16\nseed 1\n";
  train(p, options);
  options.resumes = true;
  options.steps = 4;
  const auto failure = [&] {
    Transformer model(small(), text());
    const Result<Steps> steps = train(p, options, model);
    REQUIRE(!steps);
    return steps.failure().message;
  };
  const fs::path at = folder.path / "step-00000002";
  const fs::path stage = at / "stage-1";
  const auto size = fs::file_size(stage);
  options.what = "width 16\nseed 2\n";
  CHECK(failure() == "checkpoint " + at.string() + ": it is of another run: it has 'seed 1', this run 'seed 2'");
  options.what = "width 16\nseed 1\n";
  options.steps = 2;
  CHECK(failure() == "the checkpoint in " + folder.path.string() + " has done 2 steps, and --steps is 2");
  options.steps = 4;
  {
    std::fstream file(stage, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1000);
    file.put('x');
  }
  CHECK(failure() == "checkpoint " + stage.string() + ": its data has changed since it was written");
  fs::resize_file(stage, size - 1);
  CHECK(failure() == "checkpoint " + stage.string() + ": it is cut short");
  fs::resize_file(stage, 3);
  CHECK(failure() == "checkpoint " + stage.string() + ": this is no state of a stage, or it is cut short");
  fs::copy_file(at / "stage-0", stage, fs::copy_options::overwrite_existing);
  CHECK(failure().find("it is the state of stage 0 after step 2") != std::string::npos);
  fs::remove(stage);
  CHECK(failure() == "checkpoint " + stage.string() + ": No such file or directory");
  fs::remove_all(folder.path);
  CHECK(failure() == "there is no checkpoint in " + folder.path.string());
}

TEST_CASE("a folder of checkpoints is one run's until it ends") {
  const Folder folder;
  const std::string path = folder.path.string();
  CHECK(prepare_checkpoints(path, true).failure().message == "there is no checkpoint in " + path);
  CHECK(!fs::exists(folder.path));
  {
    const Result<CheckpointFolder> first = prepare_checkpoints(path, false);
    REQUIRE(first);
    CHECK(prepare_checkpoints(path, false).failure().message == "another run keeps its checkpoints in " + path + " at this moment");
  }
  CHECK(prepare_checkpoints(path, false));
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("a checkpoint that cannot be written ends the run, and what stands there stays") {
  const Folder folder;
  const Program p = test::make(test::one_f_one_b(2, 2), 2, 2);
  std::ofstream(folder.path).put('x');
  RunOptions options;
  options.steps = 2;
  options.checkpoints = folder.path;
  options.checkpoint_every = 1;
  Transformer model(small(), text());
  const Result<Steps> steps = train(p, options, model);
  REQUIRE(!steps);
  CHECK(steps.failure().message ==
        "checkpoint " + (folder.path / ".step-00000001.part").string() + ": Not a directory");
  CHECK(fs::file_size(folder.path) == 1);
}

ModelConfig tied() {
  ModelConfig config = small();
  config.blocks = 4;
  config.tied = true;
  return config;
}

/// The copies of the embedding, of all stages and replicas.
std::vector<ParameterView> copies_of_embedding(Workload& model, std::uint32_t stages) {
  std::vector<ParameterView> result;
  for (std::uint32_t s = 0; s < stages; ++s)
    for (std::uint32_t r = 0; Stage* stage = model.stage(StageId(s), r); ++r)
      for (const ParameterView& each : stage->parameters())
        if (each.name == "embedding.bytes") result.push_back(each);
  return result;
}

double squares_of(const ParameterView& view) {
  double sum = 0;
  for (std::size_t i = 0; i < view.count; ++i) sum += std::pow(static_cast<double>(static_cast<const float*>(view.gradient)[i]), 2);
  return sum;
}

/// Trains tied and holds it against the sequential run; returns the copies, which must be alike.
void check_tied(const Program& p, std::uint32_t stages, std::size_t copies) {
  const Result<Plan> plan = make_plan(p, true);
  REQUIRE(plan);
  RunOptions options;
  options.steps = 3;
  Transformer model(tied(), text());
  Result<Steps> steps = train(p, options, model);
  REQUIRE_MESSAGE(steps, steps.failure().message);
  const std::vector<ParameterView> views = copies_of_embedding(model, stages);
  REQUIRE(views.size() == copies);
  for (const ParameterView& each : views) {
    CHECK(std::memcmp(each.value, views[0].value, each.count * sizeof(float)) == 0);
    CHECK(std::memcmp(each.gradient, views[0].gradient, each.count * sizeof(float)) == 0);
  }
  // Once in the norm, and once among the parameters, which the head is no longer of.
  double squares = 0;
  for (std::uint32_t s = 0; s < stages; ++s)
    for (const ParameterView& each : model.stage(StageId(s))->parameters())
      if (each.name != "embedding.bytes" || s == 0) squares += squares_of(each);
  CHECK(steps->norms.back() == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
  ModelConfig apart = tied();
  apart.tied = false;
  Transformer untied(apart, text());
  REQUIRE(untied.configure(plan.value().model));
  CHECK(untied.parameters() - model.parameters() == 256 * apart.width);

  Transformer reference(tied(), text());
  const Result<double> loss = run_reference(reference, plan.value().model, 3);
  REQUIRE(loss);
  CHECK(loss.value() == doctest::Approx(steps->losses.back()).epsilon(1e-6));
  const Comparison comparison = compare_gradients(p.table, model, reference);
  CHECK(comparison.worst < 1e-3);
  if (comparison.must_be_exact) CHECK(comparison.exact == comparison.tensors);
  // One stage has one matrix, and gives the same but for rounding.
  Transformer whole(tied(), text());
  const Result<double> alone = run_reference(whole, plain_partition(1, plan.value().model.microbatches), 3);
  REQUIRE(alone);
  CHECK(alone.value() == doctest::Approx(loss.value()).epsilon(1e-5));
}

TEST_CASE("a tied embedding stays one: over devices, on one device, in replicas") {
  check_tied(test::make(test::one_f_one_b(4, 6), 4, 6), 4, 2);
  check_tied(test::make(test::split_1f1b(4, 6, true), 4, 6), 4, 2);
  // Down and up again: the first device has first and last stage.
  check_tied(test::make(test::random_order(3, {0, 1, 1, 0}, 2, 4), 4, 4), 4, 2);
  check_tied(test::make(test::random_order(4, {0, 0, 0, 0}, 1, 4), 4, 4), 4, 2);
  const Result<Program> three = replicate(test::make(test::one_f_one_b(2, 2), 2, 2), 3);
  REQUIRE(three);
  check_tied(three.value(), 2, 6);
}

TEST_CASE("a tied embedding: clipped as one, and resumed bit for bit") {
  const Folder folder;
  const Program p = test::make(test::one_f_one_b(3, 4), 3, 4);
  RunOptions options;
  options.steps = 4;
  options.clip_norm = 0.1;
  const auto run_tied = [&] {
    Transformer model(tied(), text());
    Result<Steps> steps = train(p, options, model);
    REQUIRE_MESSAGE(steps, steps.failure().message);
    const std::vector<ParameterView> views = copies_of_embedding(model, 3);
    CHECK(std::memcmp(views[1].value, views[0].value, views[0].count * sizeof(float)) == 0);
    double squares = 0;
    for (std::uint32_t s = 0; s < 3; ++s)
      for (const ParameterView& each : model.stage(StageId(s))->parameters())
        if (each.name != "embedding.bytes" || s == 0) squares += squares_of(each);
    CHECK(std::sqrt(squares) == doctest::Approx(0.1).epsilon(1e-6));
    return steps->losses;
  };
  const std::vector<double> whole = run_tied();
  options.checkpoints = folder.path;
  options.checkpoint_every = 2;
  run_tied();
  fs::remove_all(folder.path / "step-00000004");
  options.resumes = true;
  CHECK(run_tied() == std::vector(whole.begin() + 2, whole.end()));
}

TEST_CASE("an embedding is not tied where the schedule updates it itself") {
  const Program p = test::make({{{'F', 0, 0}, {'F', 1, 0}, {'B', 1, 0}, {'B', 0, 0}, {'O', 0, 0}, {'O', 1, 0}}}, 2, 1);
  Transformer model(tied(), text());
  Result<Steps> steps = train(p, RunOptions(), model);
  REQUIRE(!steps);
  CHECK(steps.failure().message ==
        "embeddings cannot be tied: the schedule updates weights before all gradients are there");
}

TEST_CASE("an interrupt ends a run that keeps checkpoints after the step under way, with one, from which it goes on") {
  const Folder folder;
  const Program p = test::make(test::split_1f1b(3, 4, false), 3, 4);
  RunOptions options;
  options.clock = Clock::Virtual;
  options.steps = 6;
  const Steps whole = train(p, options);
  std::atomic<int> interrupt = 0;
  options.checkpoints = folder.path;
  options.checkpoint_every = 100;
  options.interrupt = [&] { return interrupt.load(); };
  std::vector<double> losses;
  options.on_step = [&](const StepReport& step) {
    losses.push_back(step.loss);
    // While the third step is under way, as far as the run can tell.
    if (step.step == 1) interrupt = 2;
  };
  Transformer model(small(), text());
  const Result<RunReport> report = run(p, model, options);
  REQUIRE_MESSAGE(report, report.failure().message);
  CHECK(report.value().interrupted);
  CHECK(report.value().signal == 2);
  CHECK(losses.size() == 3);
  CHECK(last_checkpoint(folder.path) == 3);
  interrupt = 0;
  options.resumes = true;
  Transformer again(small(), text());
  const Result<RunReport> rest = run(p, again, options);
  REQUIRE_MESSAGE(rest, rest.failure().message);
  CHECK(!rest.value().interrupted);
  CHECK(losses == whole.losses);
}

TEST_CASE("frozen W are shorter by the share of their work that their groups freeze, and the loss still falls") {
  constexpr std::uint32_t kStages = 2;
  constexpr std::uint32_t kMicrobatches = 6;
  const Program p = test::make(test::split_1f1b(kStages, kMicrobatches, false), kStages, kMicrobatches);
  ModelConfig config;
  config.width = 128;
  config.blocks = 4;
  config.steps = 12;
  // Half of the first stage's microbatches freeze a half, and all of the last's, which has no other to compare with.
  FreezeRatios freeze;
  for (std::uint32_t s = 0; s < kStages; ++s)
    for (std::uint32_t m = 0; m < kMicrobatches; ++m) freeze.ratio.push_back(s == 1 ? 0.6 : m % 2 == 0 ? 0.5 : 0);
  Transformer model(config, text(), freeze);
  RunOptions options;
  options.clock = Clock::Virtual;
  options.steps = config.steps;
  const Result<RunReport> report = run(p, model, options);
  REQUIRE_MESSAGE(report, report.failure().message);
  const std::vector<FrozenTime> all = frozen_times(p, report.value().shortest_ns, model);
  REQUIRE(all.size() == 2);
  CHECK(all[0].frozen == 3);
  CHECK(all[0].ops == 6);
  CHECK(all[0].groups == doctest::Approx(0.5));
  CHECK(all[0].work == doctest::Approx(0.5));
  CHECK(all[1].frozen == 6);
  CHECK(all[1].asked == doctest::Approx(0.6));
  CHECK(all[1].groups == doctest::Approx(15.0 / 24));
  // The head is never frozen in part: 2 blocks of 12 * 128 * 128, and 256 * 128.
  CHECK(all[1].work == doctest::Approx(15.0 / 24 * 24 * 128 / (24 * 128 + 256)));
  for (const FrozenTime& each : all) {
    REQUIRE(each.measured);
    CHECK(*each.measured == doctest::Approx(each.work).epsilon(0.1));
  }
  CHECK(report.value().losses.back() < report.value().losses.front());
}

TEST_CASE("of B nothing is measured, and without freezing there is nothing to say") {
  const Program p = test::make(test::one_f_one_b(2, 2), 2, 2);
  const std::vector<Ticks> lengths(p.table.size(), 10);
  Transformer frozen(small(), text(), FreezeRatios{{1, 0, 0, 0}});
  REQUIRE(frozen.configure(plain_partition(2, 2)));
  const std::vector<FrozenTime> all = frozen_times(p, lengths, frozen);
  REQUIRE(all.size() == 1);
  CHECK(all[0].frozen == 1);
  CHECK(all[0].work == 1);
  CHECK(!all[0].measured);
  Transformer plain(small(), text());
  REQUIRE(plain.configure(plain_partition(2, 2)));
  CHECK(frozen_times(p, lengths, plain).empty());
}

TEST_CASE("replicas of a schedule train on more microbatches, and agree with a sequential run of all") {
  for (const test::Order& order : {test::one_f_one_b(2, 3), test::split_1f1b(2, 3, true)}) {
    const Program one = test::make(order, 2, 3);
    const Result<Program> made = replicate(one, 3);
    REQUIRE(made);
    const Program& three = made.value();
    CHECK(three.table.devices() == 6);
    CHECK(three.messages.size() == 3 * one.messages.size());
    IntegerWorkload workload;
    RunOptions options;
    options.clock = Clock::Virtual;
    options.cost_ns = replicate_by_node(one, std::vector<Ticks>(one.nodes(), 5), 3);
    const Result<RunReport> report = run(three, workload, options);
    REQUIRE_MESSAGE(report, report.failure().message);
    const Result<Plan> plan = make_plan(three, true);
    REQUIRE(plan);
    CHECK(plan.value().model.microbatches == 9);
    CHECK(plan.value().model.devices[StageId(0)] == std::vector{DeviceId(0), DeviceId(2), DeviceId(4)});
    IntegerWorkload reference;
    REQUIRE(run_reference(reference, plan.value().model, 1));
    const Comparison comparison = compare_gradients(three.table, workload, reference);
    CHECK(comparison.exact == comparison.tensors);
    CHECK(comparison.tensors == 6);
    const Timeline first = copy_of(one, report.value().timeline, 3, 0);
    CHECK(first.start.size() == one.nodes());
    CHECK(copy_of(one, report.value().timeline, 3, 2).end.back() == report.value().timeline.end.back());
  }
}

TEST_CASE("what cannot be replicated") {
  const Program p = test::make(test::one_f_one_b(2, 2), 2, 2);
  CHECK(!replicate(p, 0));
  CHECK(!replicate(p, kMaxReplicas + 1));
  const Program updated = test::make({{{'F', 0, 0}, {'B', 0, 0}, {'O', 0, 0}}}, 1, 1);
  const Result<Program> made = replicate(updated, 2);
  REQUIRE(!made);
  CHECK(made.failure().message.find("belongs to no microbatch") != std::string::npos);
}

}  // namespace
}  // namespace stave
