#include "executor/stage/transformer.h"

#include <algorithm>

#include "executor/cpu/matmul.h"
#include "executor/stage/transformer_stage.h"

namespace stave {

Transformer::Transformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus, FreezeRatios freeze)
    : config_(config), corpus_(std::move(corpus)), freeze_(std::move(freeze)) {}

Transformer::~Transformer() = default;

std::size_t Transformer::first_block(std::uint32_t stage) const { return blocks_ * stage / stages_; }

Result<void> Transformer::configure(std::uint32_t stages, std::uint32_t microbatches) {
  if (Result<void> valid = validate(config_); !valid) return valid;
  const std::size_t blocks = config_.blocks == 0 ? stages : config_.blocks;
  if (blocks < stages)
    return Failure{"blocks is " + std::to_string(config_.blocks) + ", but the schedule has " + std::to_string(stages) +
                   " stages, and each needs one"};
  if (blocks > kBlocksBounds.most)
    return Failure{"the schedule has " + std::to_string(stages) + " stages; a model has at most " +
                   std::to_string(kBlocksBounds.most) + " blocks"};
  if (corpus_ == nullptr || corpus_->size() < config_.sequence + 1u)
    return Failure{"the text to train on is shorter than a sequence of " + std::to_string(config_.sequence) +
                   " bytes and the one after it"};
  if (!freeze_.fits(stages, microbatches)) return Failure{"the freeze ratios do not fit the schedule"};
  if (stages != stages_ || microbatches != microbatches_) made_.clear();
  stages_ = stages;
  microbatches_ = microbatches;
  blocks_ = blocks;
  return {};
}

void Transformer::create() {
  if (!made_.empty()) return;
  use_one_thread();
  for (std::uint32_t s = 0; s < stages_; ++s) {
    const std::size_t first = first_block(s);
    const std::size_t last = first_block(s + 1);
    std::vector<FrozenGroups> frozen;
    for (std::uint32_t m = 0; m < microbatches_; ++m)
      frozen.push_back(freeze_groups(freeze_.at(s, m, microbatches_), last - first));
    made_.push_back(std::make_unique<TransformerStage>(
        config_, StageLayout(config_, first, last, blocks_, s == 0, s + 1 == stages_), corpus_, std::move(frozen)));
  }
  // oneDNN compiles its kernels at their first call, which would count as part of the first op of each kind.
  const AlignedBytes value(payload_bytes("activation"));
  for (std::uint32_t s : {0u, stages_ - 1}) {
    const AlignedBytes stash(stash_bytes(StageId(s)));
    made_[s]->begin_step(0);
    made_[s]->forward(0, value.data(), nullptr, stash.data());
    made_[s]->input_gradient(0, value.data(), nullptr, stash.data());
    made_[s]->weight_gradient(0, stash.data());
  }
}

Stage* Transformer::stage(StageId s) { return made_[s.value].get(); }

std::size_t Transformer::payload_bytes(std::string_view payload) const {
  if (payload != "activation" && payload != "gradient") return 0;
  return static_cast<std::size_t>(config_.rows) * config_.sequence * config_.width * sizeof(float);
}

std::size_t Transformer::stash_bytes(StageId s) const {
  const StageLayout layout(config_, first_block(s.value), first_block(s.value + 1), blocks_, s.value == 0,
                           s.value + 1 == stages_);
  return layout.stash_floats() * sizeof(float);
}

std::uint64_t Transformer::parameter_bytes() const {
  std::uint64_t sum = 0;
  for (std::uint32_t s = 0; s < stages_; ++s) {
    const StageLayout layout(config_, first_block(s), first_block(s + 1), blocks_, s == 0, s + 1 == stages_);
    // Values, gradients and two moments.
    sum += (4 * layout.floats + layout.scratch_floats()) * sizeof(float);
  }
  return sum;
}

std::uint64_t Transformer::tokens_per_step() const {
  return std::uint64_t{config_.rows} * config_.sequence * microbatches_;
}

std::uint64_t Transformer::parameters() const {
  std::uint64_t sum = 0;
  for (std::uint32_t s = 0; s < stages_; ++s)
    sum += StageLayout(config_, first_block(s), first_block(s + 1), blocks_, s == 0, s + 1 == stages_).parameters();
  return sum;
}

double Transformer::frozen_ratio(std::uint32_t stage, std::uint32_t microbatch) const {
  return freeze_groups(freeze_.at(stage, microbatch, microbatches_), first_block(stage + 1) - first_block(stage)).ratio;
}

}  // namespace stave
