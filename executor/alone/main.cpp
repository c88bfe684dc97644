// stave-run: runs a Program file written elsewhere (`stave table --format program`), where nothing compiles a schedule:
// it needs core/ and executor/ alone. With the CUDA toolkit it runs on GPUs too.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/program_file.h"
#include "executor/alone/arguments.h"
#include "executor/gpu.h"
#include "executor/plan.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/transformer.h"
#ifdef STAVE_WITH_CUDA
#include "executor/cuda/gpu.h"
#endif

namespace stave {
namespace {

/// Most bytes of a program file.
constexpr std::streamoff kMostBytes = std::streamoff{1} << 32;
int fail(const std::string& message) {
  std::fprintf(stderr, "stave-run: %s\n", message.c_str());
  return 2;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  if (size < 0) return Failure{"cannot read " + path + ": " + std::strerror(errno)};
  if (size > kMostBytes) return Failure{path + " is too large for a program"};
  in.seekg(0);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (!in.read(text.data(), size)) return Failure{"cannot read " + path};
  return text;
}

int run_all(const AloneArguments& arguments) {
  if (Result<void> valid = validate(arguments.model); !valid) return fail(valid.failure().message);
  const Result<std::string> text = read_file(arguments.program);
  if (!text) return fail(text.failure().message);
  Result<Program> program = read_program(text.value());
  if (!program) return fail(arguments.program + ": " + program.failure().message);
  Result<Plan> plan = make_plan(*program, true);
  if (!plan) return fail(arguments.program + ": " + plan.failure().message);

  std::unique_ptr<Gpu> gpu;
  if (arguments.is_on_gpus) {
    if (gpu_maker == nullptr) return fail("--backend cuda: this build was made without CUDA");
    Result<std::unique_ptr<Gpu>> made = gpu_maker(program->table.devices(), arguments.gpu);
    if (!made) return fail("--backend cuda: " + made.failure().message);
    gpu = std::move(*made);
  }
  const std::vector<std::string> data = arguments.data.empty() ? std::vector{arguments.program} : arguments.data;
  std::shared_ptr<const Corpus> corpus;
  if (arguments.trains) {
    Result<Corpus> loaded = Corpus::load(data, arguments.model.sequence + 1);
    if (!loaded) return fail(loaded.failure().message);
    corpus = std::make_shared<const Corpus>(std::move(*loaded));
  }
  const auto on_cpu = [&]() -> std::unique_ptr<Workload> {
    if (arguments.trains) return std::make_unique<Transformer>(arguments.model, corpus);
    return std::make_unique<IntegerWorkload>(kIntegerWords, arguments.model.seed);
  };
  // The workload of the CPU whose calls a GPU's streams make.
  std::unique_ptr<Workload> inner;
  std::unique_ptr<Workload> workload;
  if (gpu != nullptr && arguments.trains) {
    workload = gpu->transformer(arguments.model, corpus, {});
  } else {
    workload = on_cpu();
    if (gpu != nullptr) {
      inner = std::move(workload);
      workload = gpu->on_host(*inner);
    }
  }
  Comparison comparison;
  std::string failure;
  RunOptions options;
  options.clock = gpu == nullptr ? Clock::Virtual : Clock::Wall;
  options.steps = arguments.model.steps;
  options.on_step = [&](const StepReport& step) {
    std::printf("step %llu  ", static_cast<unsigned long long>(step.step + 1));
    if (arguments.trains) std::printf("loss %.6f  ", step.loss);
    std::printf("makespan %.3f ms", static_cast<double>(step.makespan_ns) * 1e-6);
    if (step.bubble) std::printf("  bubble %.1f %%", 100 * *step.bubble);
    std::printf("\n");
    if (!arguments.verify || step.step != 0) return;
    const std::unique_ptr<Workload> reference = on_cpu();
    if (const Result<double> loss = run_reference(*reference, plan->model, 1); !loss) failure = loss.failure().message;
    else comparison = compare_gradients(program->table, *workload, *reference);
  };
  const Result<RunReport> report =
      gpu == nullptr ? stave::run(*program, *workload, options) : gpu->run(*program, *workload, options);
  if (!report) return fail(report.failure().message);
  if (!failure.empty()) return fail(failure);
  if (!arguments.verify) return 0;
  std::printf("gradients of step 1 equal the sequential run's: %s: %zu of %zu tensors to the last bit",
              comparison.agrees ? "yes" : "no", comparison.exact, comparison.tensors);
  if (comparison.exact != comparison.tensors) {
    std::printf(", the others within %.1e of their largest element", comparison.worst);
  }
  std::printf("\n");
  return comparison.agrees ? 0 : 1;
}

}  // namespace
}  // namespace stave

int main(int argc, char** argv) {
  if (argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::fputs(stave::kAloneUsage, stdout);
    return 0;
  }
#ifdef STAVE_WITH_CUDA
  stave::gpu_maker = stave::make_cuda_gpu;
#endif
  const stave::Result<stave::AloneArguments> arguments = stave::read_alone_arguments(argc, argv);
  if (!arguments) return stave::fail(arguments.failure().message);
  return stave::run_all(arguments.value());
}
