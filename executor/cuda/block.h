// A transformer block on a GPU: as executor/stage/block.h, with the same stash, enqueued on a stream.
#pragma once

#include <span>

#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/matmul.h"
#include "executor/stage/block.h"

namespace stave {

/// The products of a linear layer for some number of tokens, as CudaMatmul numbers them.
struct LinearPlans {
  std::size_t forward = 0;
  std::size_t input_gradient = 0;
  std::size_t weight_gradient = 0;
};

/// y = beta * y + x W, with a bias or without, for x[tokens][inputs].
LinearPlans plan_linear(CudaMatmul& matmul, std::size_t tokens, std::size_t inputs, std::size_t outputs, float beta,
                        bool has_bias);

struct BlockPlans {
  LinearPlans attention;
  LinearPlans projection;
  LinearPlans widen;
  LinearPlans narrow;

  BlockPlans(CudaMatmul& matmul, std::size_t tokens, std::size_t width);
};

/// Floats of the scratch that one stream needs for any block.
std::size_t cuda_block_scratch_floats(const BlockShape& shape);

/// A block's calls for one part. All pointers are device memory.
struct CudaBlock {
  const BlockShape& shape;
  const BlockParameters& parameters;
  const BlockPlans& plans;
  CudaMatmul& matmul;
  cudaStream_t stream;

  void forward(const float* values, std::span<const EarlierSlice> earlier, bool again, float* x, float* stash) const;
  /// Drops what a forward left but qkv, which slices after it read in part.
  void forget(float* stash) const;
  void input_gradient(const float* values, std::span<const EarlierSlice> earlier, std::uint8_t frozen, float* g,
                      float* stash, float* scratch) const;
  void weight_gradient(std::uint8_t frozen, float* gradients, float* stash) const;

 private:
  void attention_forward(std::span<const EarlierSlice> earlier, const float* qkv, float* probabilities,
                         float* context) const;
  void attention_gradient(std::span<const EarlierSlice> earlier, const float* d_context, const float* probabilities,
                          float* qkv, const float* d_later, float* dp, float* dq) const;
  cuda::ProductShape products(std::size_t m, std::size_t n, std::size_t k) const;
};

}  // namespace stave
