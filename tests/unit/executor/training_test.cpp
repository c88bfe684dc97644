// What goes around the ops of a step: clipping, checkpoints, replicas of a whole schedule.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "executor/checkpoint.h"
#include "executor/plan.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/replicate.h"
#include "executor/run.h"
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
