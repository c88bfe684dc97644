// One stage of the language model: its parameters, their layout, and the calls of Stage. How a model is cut into stages
// is in transformer.cpp, what a block computes in block.cpp.
#pragma once

#include <memory>

#include "executor/aligned.h"
#include "executor/data.h"
#include "executor/stage/block.h"
#include "executor/stage/config.h"
#include "executor/stage/stage.h"
#include "executor/stage/token_spans.h"

namespace stave {

/// Values of a byte.
inline constexpr std::size_t kClasses = 256;

/// Which parameters a stage has and where they lie in its arena.
struct StageLayout {
  struct Named {
    std::string name;
    Tensor tensor;
    /// Standard deviation at the start; 0 for a constant.
    double deviation = 0;
    float constant = 0;
  };

  std::size_t rows = 0;
  std::size_t width = 0;
  std::size_t heads = 0;
  /// Some route begins at the stage, or ends there.
  bool is_first = false;
  bool is_last = false;
  /// Some part of it keeps its input, to be recomputed.
  bool keeps_input = false;
  std::vector<BlockParameters> blocks;
  Tensor bytes;
  Tensor positions;
  BlockParameters::Norm final_norm;
  Tensor head;
  std::vector<Named> tensors;
  /// Length of the arena, each tensor beginning on a cache line.
  std::size_t floats = 0;

  /// Blocks `first` .. `last` - 1 of a model with `all_blocks`.
  StageLayout(const ModelConfig& config, std::size_t first, std::size_t last, std::size_t all_blocks, bool is_first,
              bool is_last, bool keeps_input);
  std::size_t parameters() const;
  BlockShape shape(const TokenSpan& span) const;
  /// Of the greatest of the spans.
  std::size_t stash_floats(const TokenSpans& spans) const;
  std::size_t scratch_floats(const TokenSpans& spans) const;
};

/// Where a stage keeps in a stash what is not a block's.
struct StageEnds;

class TransformerStage : public Stage {
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

  /// Adds the loss of every part that ended here to sums[microbatch * slices + slice].
  void add_losses(std::vector<double>& sums) const;

 private:
  const float* values(const Part& part) const { return values_[part.weights].floats(); }
  BlockShape shape(const Part& part) const { return layout_.shape(spans_->at(part.microbatch, part.slice)); }
  std::span<const std::uint8_t> row(const Part& part, std::size_t r) const;
  void begin_update();
  void embed(const Part& part, float* x) const;
  void run_blocks(const Part& part, bool again, float* x);
  double loss_forward(const Part& part, const float* x, const StageEnds& ends) const;
  void loss_input_gradient(const Part& part, const StageEnds& ends, bool frozen, float* g) const;
  void find_earlier(const Part& part);
  void move_earlier(std::ptrdiff_t blocks);

  ModelConfig config_;
  StageLayout layout_;
  std::shared_ptr<const TokenSpans> spans_;
  std::shared_ptr<const Corpus> corpus_;
  std::vector<FrozenGroups> frozen_;
  // By version.
  std::vector<AlignedBytes> values_;
  AlignedBytes gradients_;
  AlignedBytes first_moments_;
  AlignedBytes second_moments_;
  AlignedBytes scratch_;
  // Sums over the tokens of a part; empty unless routes end here.
  std::vector<double> losses_;
  // Of the part under way: the slices before it, as a block sees them.
  std::vector<EarlierSlice> earlier_;
  std::uint64_t step_ = 0;
  std::uint64_t updates_ = 0;
  // An update has used the gradients, and none has been added since.
  bool used_ = false;
};

}  // namespace stave
