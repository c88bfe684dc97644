// The language model on GPUs: cut, laid out and begun as on a CPU, with stages that enqueue on the stream of their
// device. What a stage does is in transformer_stage.h. Beside parameter_bytes() cuBLASLt takes 32 MiB a GPU, and in bf16
// two bytes a value of the greatest factors.
#pragma once

#include "executor/cuda/lane.h"
#include "executor/cuda/matmul.h"
#include "executor/stage/transformer.h"

namespace stave {

class CudaTransformer : public Transformer {
 public:
  /// `lane_of` says where a device of the schedule computes; it is called by create(). The GPU and stream must outlive
  /// the model.
  CudaTransformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus, FreezeRatios freeze, LaneOf lane_of,
                  Precision precision = Precision::Float32);
  ~CudaTransformer() override;

  /// Also runs every stage once, so that all kernels are loaded, and waits for that. Throws std::runtime_error with the
  /// text of CUDA or cuBLASLt.
  void create() override;

  bool is_on_host() const override { return false; }
  void copy(void* to, const void* from, std::size_t bytes) const override;

 protected:
  std::size_t scratch_bytes(const StageLayout& layout) const override;

 private:
  LaneOf lane_of_;
  Precision precision_;
};

}  // namespace stave
