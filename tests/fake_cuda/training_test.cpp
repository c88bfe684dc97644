// What a training run on GPUs shares with one on the CPU: checkpoints, the norm of gradients and clipping, the comparison
// with a sequential run. On the stand-ins.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "executor/checkpoint.h"
#include "executor/cuda/run_cuda.h"
#include "executor/cuda/transformer.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/transformer.h"
#include "make_program.h"
#include "tests/property/lowered.h"

namespace stave {
namespace {

constexpr std::uint64_t kSteps = 6;

enum class Home { Cpu, Local, Graph, Nccl };
constexpr Home kGpus[] = {Home::Local, Home::Graph, Home::Nccl};

ModelConfig model() {
  ModelConfig config;
  config.width = 16;
  config.heads = 2;
  config.sequence = 8;
  config.steps = kSteps;
  return config;
}

std::shared_ptr<const Corpus> corpus() {
  std::vector<std::uint8_t> bytes;
  RandomStream random(7);
  for (int i = 0; i < 4000; ++i) bytes.push_back(static_cast<std::uint8_t>('a' + random.below(26)));
  return std::make_shared<const Corpus>(std::move(bytes));
}

Program program() { return test::make(test::split_1f1b(3, 4, false), 3, 4); }

struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::optional<Comparison> comparison;
};

/// Trains at `home`; after the first step the gradients are compared with a sequential run's.
Trained train(const Program& program, Home home, RunOptions options) {
  Trained trained;
  std::unique_ptr<CudaLanes> lanes;
  std::unique_ptr<Workload> workload;
  options.on_step = [&](const StepReport& step) {
    trained.losses.push_back(step.loss);
    trained.norms.push_back(step.gradient_norm);
    if (step.step != 0 || options.clip_norm > 0) return;
    Transformer plain(model(), corpus());
    REQUIRE(run_reference(plain, test::partition_of(program), 1));
    trained.comparison = compare_gradients(program.table, *workload, plain);
  };
  Result<RunReport> report = Failure{""};
  if (home == Home::Cpu) {
    workload = std::make_unique<Transformer>(model(), corpus());
    report = run(program, *workload, options);
  } else {
    CudaOptions cuda;
    cuda.transport = home == Home::Nccl ? CudaTransport::Nccl : CudaTransport::Local;
    cuda.graph = home == Home::Graph;
    Result<std::unique_ptr<CudaLanes>> made = CudaLanes::make(program.table.devices(), home == Home::Nccl);
    REQUIRE(made);
    lanes = std::move(*made);
    auto stages = std::make_unique<CudaTransformer>(model(), corpus(), FreezeRatios(), lanes->lane_of());
    workload = std::move(stages);
    report = run_cuda(program, *workload, *lanes, options, cuda);
  }
  REQUIRE_MESSAGE(report, report.failure().message);
  // Before the lanes, on whose GPUs it lies.
  workload.reset();
  return trained;
}

RunOptions steps(std::uint64_t count) {
  RunOptions options;
  options.steps = count;
  options.measures_norm = true;
  return options;
}

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("stave-cuda-" + std::to_string(::getpid()));
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

/// The first half at one home, the second at another, over a checkpoint.
std::vector<double> train_in_halves(const Program& program, Home first, Home second) {
  const Folder folder;
  RunOptions options = steps(kSteps / 2);
  options.checkpoints = folder.path.string();
  options.checkpoint_every = kSteps;
  options.what = "a test\n";
  REQUIRE(prepare_checkpoints(options.checkpoints, false));
  train(program, first, options);
  options.steps = kSteps;
  options.resumes = true;
  return train(program, second, options).losses;
}

TEST_CASE("a run goes on from a checkpoint of a GPU bit for bit, and of the other backend within 1e-5") {
  const Program program = stave::program();
  for (Home home : kGpus) {
    CAPTURE(static_cast<int>(home));
    const std::vector<double> whole = train(program, home, steps(kSteps)).losses;
    REQUIRE(whole.size() == kSteps);
    const std::vector<double> same = train_in_halves(program, home, home);
    const std::vector<double> from_cpu = train_in_halves(program, Home::Cpu, home);
    const std::vector<double> on_cpu = train_in_halves(program, home, Home::Cpu);
    for (std::size_t i = 0; i < kSteps / 2; ++i) {
      const double expected = whole[kSteps / 2 + i];
      CHECK(same.at(i) == expected);
      CHECK(std::abs(from_cpu.at(i) - expected) < 1e-5);
      CHECK(std::abs(on_cpu.at(i) - expected) < 1e-5);
    }
  }
}

TEST_CASE("gradients have the norm that they have on the CPU, and are clipped as there") {
  const Program program = stave::program();
  RunOptions options = steps(3);
  const Trained free = train(program, Home::Cpu, options);
  // Adam does not mind how long gradients are, until they are as short as what it adds to their length.
  options.clip_norm = 1e-7;
  const Trained expected = train(program, Home::Cpu, options);
  // Clipping must make a difference for it to be seen.
  REQUIRE(std::abs(expected.norms[1] - free.norms[1]) > 1e-4 * free.norms[1]);
  for (Home home : kGpus) {
    CAPTURE(static_cast<int>(home));
    const Trained trained = train(program, home, options);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(std::abs(trained.norms.at(i) - expected.norms[i]) < 1e-5 * expected.norms[i]);
      CHECK(std::abs(trained.losses.at(i) - expected.losses[i]) < 1e-5);
    }
  }
}

TEST_CASE("gradients on a GPU are compared with a sequential run's") {
  for (Home home : kGpus) {
    const Trained trained = train(program(), home, steps(1));
    REQUIRE(trained.comparison);
    CHECK(trained.comparison->agrees);
    CHECK(trained.comparison->tolerance == kGpuGradientTolerance);
    CHECK(trained.comparison->worst < kGpuGradientTolerance);
    CHECK(trained.comparison->tensors > 3);
  }
}

}  // namespace
}  // namespace stave
