// One stage of the language model on a GPU: as executor/stage/transformer_stage.h, with the same layouts and values.
#pragma once

#include <memory>
#include <vector>

#include "executor/cuda/block.h"
#include "executor/cuda/lane.h"
#include "executor/cuda/memory.h"
#include "executor/stage/language_stage.h"

namespace stave {

/// Its calls enqueue on the stream of its lane and return: they neither wait nor allocate, and use no other stream. All
/// memory that it takes or shows is the device's, of parameters(), state() and weights() too: cudaMemcpyDefault copies
/// it from and to anywhere. Gradients, losses and what is shown are there once the stream has been waited for, as it
/// must be between two steps. Between begin_step(), which copies from the host's memory, and settle(), the calls of a
/// step can be captured, and replayed for the next.
class CudaTransformerStage : public LanguageStage {
 public:
  /// The lane's GPU must be current. Of the CudaMatmul, allocate() must be called before the first step.
  CudaTransformerStage(const ModelConfig& config, StageLayout layout, std::shared_ptr<const TokenSpans> spans,
                       std::shared_ptr<const Corpus> corpus, std::uint32_t versions, std::vector<FrozenGroups> frozen,
                       const CudaLane& lane, std::shared_ptr<CudaMatmul> matmul);

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

  /// Runs the kernels that a pass does not, on nothing: what loads at its first launch is then there.
  void warm_up();

  static std::size_t scratch_floats(const StageLayout& layout, const TokenSpans& spans);

 private:
  // The products of all parts of a length.
  struct Plans {
    std::size_t tokens = 0;
    BlockPlans block;
    LinearPlans head;
  };
  // The scratch of a part: the residual stream or its gradient, the gradient of the last norm's output, a block's.
  struct Scratch {
    float* x;
    float* d_in;
    float* block;
    std::size_t floats;
    Scratch(const BlockShape& shape, float* base);
  };

  const float* values(const Part& part) const { return values_[part.weights].floats(); }
  bool has_tied_head() const { return layout_.tied.count() != 0; }
  LinearPlans plan_head(std::size_t tokens) const;
  const Plans& plans(const BlockShape& shape) const;
  CudaBlock block(const BlockShape& shape, std::size_t b) const;
  cuda::AdamScalars* scalars() const { return reinterpret_cast<cuda::AdamScalars*>(scalars_.data()); }
  // The bytes of a part from its first or second on.
  cuda::Text text(const Part& part, std::size_t from) const;
  void copy(void* to, const void* from, std::size_t bytes) const;
  void set(void* to, int value, std::size_t bytes) const;
  void clear_gradients() override;
  void run_blocks(const Part& part, bool again, const std::byte* input);
  void loss_forward(const Part& part, const StageEnds& ends, double* loss) const;
  void loss_input_gradient(const Part& part, const StageEnds& ends, bool frozen) const;

  cudaStream_t stream_;
  std::shared_ptr<CudaMatmul> matmul_;
  // By length, for the few that there are.
  std::vector<Plans> plans_;
  // By version.
  std::vector<DeviceBytes> values_;
  DeviceBytes gradients_;
  DeviceBytes first_moments_;
  DeviceBytes second_moments_;
  DeviceBytes scratch_;
  DeviceBytes scalars_;
  DeviceBytes part_loss_;
  // Shape: microbatches x rows x (sequence + 1); empty unless routes begin or end here. On the host, what the next step
  // copies to the device.
  DeviceBytes texts_;
  PinnedBytes host_texts_;
  PinnedBytes learning_rate_;
  // Sums over the tokens of a part, double; empty unless routes end here.
  PinnedBytes losses_;
};

}  // namespace stave
