// One stage of the language model: its parameters, their layout, and the calls of Stage. How a model is cut into stages
// is in transformer.cpp, what a block computes in block.cpp.
#pragma once

#include <memory>

#include "executor/aligned.h"
#include "executor/data.h"
#include "executor/stage/block.h"
#include "executor/stage/config.h"
#include "executor/stage/stage.h"

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

  BlockShape shape;
  bool is_first = false;
  bool is_last = false;
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
              bool is_last);
  std::size_t parameters() const;
  std::size_t stash_floats() const;
  std::size_t scratch_floats() const;
};

/// Where the first and the last stage keep what is theirs in a stash.
struct StageEnds;

class TransformerStage : public Stage {
 public:
  /// Shape: frozen[m] for every microbatch.
  TransformerStage(const ModelConfig& config, StageLayout layout, std::shared_ptr<const Corpus> corpus,
                   std::vector<FrozenGroups> frozen);

  void begin_step(std::uint64_t step) override;
  void forward(std::uint32_t microbatch, const std::byte* input, std::byte* output, std::byte* stash) override;
  void input_gradient(std::uint32_t microbatch, const std::byte* gradient, std::byte* output,
                      std::byte* stash) override;
  void weight_gradient(std::uint32_t microbatch, std::byte* stash) override;
  void optimizer_step() override;
  double loss() const override;
  std::vector<ParameterView> parameters() const override;

 private:
  std::span<const std::uint8_t> row(std::uint32_t microbatch, std::size_t r) const;
  void embed(std::uint32_t microbatch, float* x) const;
  void loss_forward(std::uint32_t microbatch, const float* x, const StageEnds& ends);
  void loss_input_gradient(const StageEnds& ends, bool frozen, float* g) const;

  ModelConfig config_;
  StageLayout layout_;
  std::shared_ptr<const Corpus> corpus_;
  std::vector<FrozenGroups> frozen_;
  AlignedBytes values_;
  AlignedBytes gradients_;
  AlignedBytes first_moments_;
  AlignedBytes second_moments_;
  AlignedBytes scratch_;
  std::vector<double> losses_;
  std::uint64_t step_ = 0;
};

}  // namespace stave
