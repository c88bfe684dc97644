// One stage of the language model on a CPU: its parameters and the calls of Stage. Where they lie is in stage_layout.h,
// how a model is cut into stages in transformer.cpp, what a block computes in block.cpp.
#pragma once

#include <memory>

#include "executor/aligned.h"
#include "executor/stage/language_stage.h"

namespace stave {

class TransformerStage : public LanguageStage {
 public:
  /// Keeps up to `versions` versions of its weights. Shape: frozen[m] for every microbatch.
  TransformerStage(const ModelConfig& config, StageLayout layout, std::shared_ptr<const TokenSpans> spans,
                   std::shared_ptr<const Corpus> corpus, std::uint32_t versions,
                   std::vector<FrozenGroups> frozen);

  void begin_step(std::uint64_t step) override;
  void forward(const Part& part, const std::byte* input, std::byte* output) override;
  void recompute(const Part& part) override;
  void input_gradient(const Part& part, const std::byte* gradient, std::byte* output) override;
  void weight_gradient(const Part& part) override;
  void optimizer_step(std::uint32_t from, std::uint32_t to) override;
  void settle(std::uint32_t newest) override;
  std::span<std::byte> weights(std::uint32_t version) override;
  GradientView gradients() override;
  std::vector<ParameterView> parameters() const override;
  std::vector<std::span<std::byte>> state() override;

  void add_losses(std::vector<double>& sums) const override;

 private:
  const float* values(const Part& part) const { return values_[part.weights].floats(); }
  std::span<const std::uint8_t> row(const Part& part, std::size_t r) const;
  void clear_gradients() override;
  void embed(const Part& part, float* x) const;
  void run_blocks(const Part& part, bool again, float* x);
  double loss_forward(const Part& part, const float* x, const StageEnds& ends) const;
  void loss_input_gradient(const Part& part, const StageEnds& ends, bool frozen, float* g) const;

  // By version.
  std::vector<AlignedBytes> values_;
  AlignedBytes gradients_;
  AlignedBytes first_moments_;
  AlignedBytes second_moments_;
  AlignedBytes scratch_;
  // Sums over the tokens of a part; empty unless routes end here.
  std::vector<double> losses_;
  std::uint64_t step_ = 0;
  std::uint64_t updates_ = 0;
};

}  // namespace stave
