#include "cli/run/trained_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "executor/plan.h"
#include "executor/ranks/ranks.h"
#include "executor/stage/integer.h"
#include "executor/stage/plugin.h"
#include "executor/stage/sleep.h"
#include "executor/stage/transformer.h"

namespace stave {

namespace {

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

}  // namespace

FreezeRatios TrainedModel::freeze() const {
  FreezeRatios result;
  const std::vector<Rational>& all = built_.schedule->costs.freeze;
  const std::size_t microbatches = all.size() / std::max(1u, built_.schedule->stages);
  // The microbatches of every replica are frozen alike.
  for (std::uint32_t s = 0; s < built_.schedule->stages && !all.empty(); ++s)
    for (std::uint32_t copy = 0; copy < arguments_.replicas; ++copy)
      for (std::size_t m = 0; m < microbatches; ++m) result.ratio.push_back(all[s * microbatches + m].to_double());
  return result;
}

Result<void> TrainedModel::find_partition() {
  if (arguments_.sleeps()) return {};
  Result<Plan> plan = make_plan(*program_, true);
  if (!plan && make_plan(*program_, false))
    return Failure{plan.failure().message + "; --workload sleep runs it without a model"};
  if (!plan) return plan.failure();
  partition_ = std::move(plan->model);
  return {};
}

Result<void> TrainedModel::make(const Program& program, Gpu* gpu) {
  program_ = &program;
  if (Result<void> found = find_partition(); !found) return found;
  if (arguments_.sleeps()) {
    workload_ = std::make_unique<SleepWorkload>(std::size_t{arguments_.message_kib} << 10);
    return {};
  }
  if (arguments_.has_own_stage()) {
    Result<std::unique_ptr<Workload>> loaded =
        load_stage(arguments_.stage, arguments_.stage_options,
                   gpu == nullptr ? std::make_unique<StageHomes>() : gpu->stage_homes());
    if (!loaded) return loaded.failure();
    workload_ = std::move(*loaded);
    return {};
  }
  if (arguments_.workload == "integer") {
    workload_ = std::make_unique<IntegerWorkload>(kIntegerWords, arguments_.model.seed, freeze());
    if (gpu != nullptr) {
      inner_ = std::move(workload_);
      workload_ = gpu->on_host(*inner_);
    }
    return {};
  }
  std::vector<std::string> files = arguments_.data.empty() ? own_docs() : arguments_.data;
  if (files.empty()) return Failure{"there is no text to train on; name a file with --data"};
  Result<Corpus> corpus = Corpus::load(files, arguments_.model.sequence + 1);
  if (!corpus) return corpus.failure();
  corpus_ = std::make_shared<Corpus>(std::move(*corpus));
  data_ = arguments_.data.empty() ? "the project's own docs" : printable(fmt::format("{}", fmt::join(files, ", ")));
  auto transformer = std::make_unique<Transformer>(arguments_.model, corpus_, freeze());
  if (Result<void> fits = transformer->configure(*partition_); !fits) return fits;
  parameters_ = transformer->parameters();
  workload_ = std::move(transformer);
  if (gpu == nullptr) return {};
  workload_ = gpu->transformer(arguments_.model, corpus_, freeze());
  if (Result<void> fits = workload_->configure(*partition_); !fits) return fits;
  return {};
}

Result<std::uint64_t> TrainedModel::make_reference() {
  const auto bound = static_cast<std::uint64_t>(arguments_.memory_gib * (1 << 30));
  if (arguments_.verify && arguments_.sleeps()) return Failure{"--verify: sleeps compute nothing that could be compared"};
  if (arguments_.verify && arguments_.has_own_stage()) {
    Result<std::unique_ptr<Workload>> loaded = load_stage(arguments_.stage, arguments_.stage_options);
    if (!loaded) return loaded.failure();
    reference_ = std::move(*loaded);
  } else if (arguments_.verify && arguments_.trains()) {
    reference_ = std::make_unique<Transformer>(arguments_.model, corpus_, freeze());
  } else if (arguments_.workload == "integer" && !arguments_.has_own_stage()) {
    reference_ = std::make_unique<IntegerWorkload>(kIntegerWords, arguments_.model.seed, freeze());
  }
  if (!reference_) return bound;
  if (Result<void> fits = reference_->configure(plainly(*partition_)); !fits) return fits.failure();
  const std::uint64_t bytes = reference_->parameter_bytes() + reference_buffer_bytes(*reference_, *partition_);
  if (bytes >= bound)
    return Failure{fmt::format("the sequential run to compare with needs {} MiB by itself; --memory allows {} MiB",
                               bytes >> 20, bound >> 20)};
  return bound - bytes;
}

void TrainedModel::compare(const StepReport& step, const Ranks* ranks) {
  const bool now = arguments_.has_loss() ? step.step == 0 : step.step + 1 == arguments_.model.steps;
  if (!reference_ || !now || !failure_.empty()) return;
  const Result<double> loss = run_reference(*reference_, *partition_, step.step + 1);
  if (!loss) {
    failure_ = loss.failure().message;
    return;
  }
  comparison_ = compare_gradients(program_->table, *workload_, *reference_);
  if (ranks == nullptr) return;
  if (const Result<void> shared = share_comparison(*ranks, *comparison_); !shared) failure_ = shared.failure().message;
}

}  // namespace stave
