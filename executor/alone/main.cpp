// stave-run: runs a Program file written elsewhere (`stave table --format program`), where nothing compiles a schedule:
// it needs core/ and executor/ alone.
#include <charconv>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/program_file.h"
#include "executor/plan.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/transformer.h"

namespace stave {
namespace {

/// Most bytes of a program file.
constexpr std::streamoff kMostBytes = std::streamoff{1} << 32;
/// Words of a stage of the integer workload.
constexpr std::uint32_t kWords = 48;

struct Arguments {
  std::string program;
  std::vector<std::string> data;
  std::string workload = "transformer";
  bool verify = false;
  ModelConfig model;
};

constexpr const char* kUsage =
    "usage: stave-run FILE [--workload transformer|integer] [--data TEXT]... [--steps N] [--width N] [--heads N]\n"
    "                 [--blocks N] [--sequence N] [--rows N] [--seed N] [--verify]\n"
    "FILE is a program: stave table SCHEDULE --format program -o FILE\n";

int fail(const std::string& message) {
  std::fprintf(stderr, "stave-run: %s\n", message.c_str());
  return 2;
}

Result<Arguments> read_arguments(int argc, char** argv) {
  Arguments result;
  ModelConfig& model = result.model;
  const std::pair<const char*, std::uint32_t*> wholes[] = {
      {"--steps", &model.steps},   {"--width", &model.width},       {"--heads", &model.heads},
      {"--blocks", &model.blocks}, {"--sequence", &model.sequence}, {"--rows", &model.rows}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--verify") {
      result.verify = true;
      continue;
    }
    if (word.rfind("--", 0) != 0) {
      if (!result.program.empty()) return Failure{"one program at a time, not " + result.program + " and " + word};
      result.program = word;
      continue;
    }
    if (i + 1 == argc) return Failure{word + " needs a value, or is unknown\n" + kUsage};
    const std::string value = argv[++i];
    const auto whole = [&](auto& into) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
      return error == std::errc() && end == value.data() + value.size();
    };
    const auto* known = std::find_if(std::begin(wholes), std::end(wholes), [&](auto& each) { return word == each.first; });
    if (known != std::end(wholes)) {
      if (!whole(*known->second)) return Failure{word + ": '" + value + "' is no whole number that fits"};
    } else if (word == "--seed") {
      if (!whole(model.seed)) return Failure{word + ": '" + value + "' is no whole number that fits"};
    } else if (word == "--data") {
      result.data.push_back(value);
    } else if (word == "--workload") {
      if (value != "transformer" && value != "integer") return Failure{"--workload is transformer or integer, not " + value};
      result.workload = value;
    } else {
      return Failure{"unknown option " + word + "\n" + kUsage};
    }
  }
  if (result.program.empty()) return Failure{std::string("no program is named\n") + kUsage};
  return result;
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

int run_all(const Arguments& arguments) {
  if (Result<void> valid = validate(arguments.model); !valid) return fail(valid.failure().message);
  const Result<std::string> text = read_file(arguments.program);
  if (!text) return fail(text.failure().message);
  Result<Program> program = read_program(text.value());
  if (!program) return fail(arguments.program + ": " + program.failure().message);
  Result<Plan> plan = make_plan(*program, true);
  if (!plan) return fail(arguments.program + ": " + plan.failure().message);

  const bool trains = arguments.workload == "transformer";
  const std::vector<std::string> data = arguments.data.empty() ? std::vector{arguments.program} : arguments.data;
  std::shared_ptr<const Corpus> corpus;
  if (trains) {
    Result<Corpus> loaded = Corpus::load(data, arguments.model.sequence + 1);
    if (!loaded) return fail(loaded.failure().message);
    corpus = std::make_shared<const Corpus>(std::move(*loaded));
  }
  const auto make = [&]() -> std::unique_ptr<Workload> {
    if (trains) return std::make_unique<Transformer>(arguments.model, corpus);
    return std::make_unique<IntegerWorkload>(kWords, arguments.model.seed);
  };
  const std::unique_ptr<Workload> workload = make();
  Comparison comparison;
  std::string failure;
  RunOptions options;
  options.clock = Clock::Virtual;
  options.steps = arguments.model.steps;
  options.on_step = [&](const StepReport& step) {
    std::printf("step %llu  ", static_cast<unsigned long long>(step.step + 1));
    if (trains) std::printf("loss %.6f  ", step.loss);
    std::printf("makespan %.3f ms  bubble %.1f %%\n", static_cast<double>(step.makespan_ns) * 1e-6, 100 * step.bubble);
    if (!arguments.verify || step.step != 0) return;
    const std::unique_ptr<Workload> reference = make();
    if (const Result<double> loss = run_reference(*reference, plan->model, 1); !loss) failure = loss.failure().message;
    else comparison = compare_gradients(program->table, *workload, *reference);
  };
  const Result<RunReport> report = stave::run(*program, *workload, options);
  if (!report) return fail(report.failure().message);
  if (!failure.empty()) return fail(failure);
  if (!arguments.verify) return 0;
  std::printf("gradients of step 1 equal the sequential run's: %s: %zu of %zu tensors to the last bit, the others within %.1e "
              "of their largest element\n",
              comparison.agrees ? "yes" : "no", comparison.exact, comparison.tensors, comparison.worst);
  return comparison.agrees ? 0 : 1;
}

}  // namespace
}  // namespace stave

int main(int argc, char** argv) {
  if (argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::fputs(stave::kUsage, stdout);
    return 0;
  }
  stave::Result<stave::Arguments> arguments = stave::read_arguments(argc, argv);
  if (!arguments) return stave::fail(arguments.failure().message);
  return stave::run_all(*arguments);
}
