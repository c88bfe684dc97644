// The ends of the model: embeddings and the cross-entropy.
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/launch.h"

namespace stave::cuda {

namespace {

// Values of a byte.
constexpr unsigned kBytes = 256;

__device__ std::uint8_t token(const Text& text, std::size_t i) {
  return text.at[i / text.count * text.stride + i % text.count];
}

}  // namespace

extern "C" __global__ void stave_embed(float* x, const float* bytes, const float* positions, Text text,
                                       std::size_t rows, std::size_t d) {
  const std::size_t at = thread_index();
  if (at >= rows * text.count * d) return;
  const std::size_t i = at / d;
  const std::size_t j = at % d;
  x[at] = bytes[token(text, i) * d + j] + positions[i % text.count * d + j];
}

// A row of blocks for each value of a byte looks through all tokens for it: sums without atomics, in one order.
extern "C" __global__ void stave_embed_gradient_bytes(float* d_bytes, const float* g, Text text, std::size_t n,
                                                      std::size_t d) {
  const std::size_t j = thread_index();
  if (j >= d) return;
  float& to = d_bytes[blockIdx.y * d + j];
  float sum = to;
  for (std::size_t i = 0; i < n; ++i)
    if (token(text, i) == blockIdx.y) sum += g[i * d + j];
  to = sum;
}

extern "C" __global__ void stave_embed_gradient_positions(float* d_positions, const float* g, std::size_t count,
                                                          std::size_t rows, std::size_t d) {
  const std::size_t at = thread_index();
  if (at >= count * d) return;
  float sum = d_positions[at];
  for (std::size_t r = 0; r < rows; ++r) sum += g[r * count * d + at];
  d_positions[at] = sum;
}

extern "C" __global__ void stave_cross_entropy(float* logits, Text targets, std::size_t classes, float scale,
                                               double* losses) {
  __shared__ float shared[kThreads];
  float* row = logits + std::size_t{blockIdx.x} * classes;
  const std::size_t target = token(targets, blockIdx.x);
  const float target_logit = row[target];
  float largest = row[0];
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) largest = row[j] > largest ? row[j] : largest;
  // Also lets every thread read the target's logit before it is written over.
  largest = block_max(largest, shared);
  float sum = 0;
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) {
    const float e = expf(row[j] - largest);
    row[j] = e;
    sum += e;
  }
  sum = block_sum(sum, shared);
  const float factor = scale / sum;
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x)
    row[j] = row[j] * factor - (j == target ? scale : 0.0f);
  if (threadIdx.x == 0)
    losses[blockIdx.x] =
        log(static_cast<double>(sum)) + static_cast<double>(largest) - static_cast<double>(target_logit);
}

extern "C" __global__ void stave_sum(const double* values, std::size_t n, double* sum) {
  __shared__ double shared[kThreads];
  double mine = 0;
  for (std::size_t i = threadIdx.x; i < n; i += blockDim.x) mine += values[i];
  const double all = block_sum(mine, shared);
  if (threadIdx.x == 0) *sum = all;
}

void embed(float* x, const float* bytes, const float* positions, Text text, std::size_t rows, std::size_t d,
           cudaStream_t stream) {
  STAVE_LAUNCH(stave_embed, blocks_for(rows * text.count * d), kThreads, stream, x, bytes, positions, text, rows, d);
}

void embed_gradient(float* d_bytes, float* d_positions, const float* g, Text text, std::size_t rows, std::size_t d,
                    cudaStream_t stream) {
  STAVE_LAUNCH(stave_embed_gradient_bytes, dim3(blocks_for(d), kBytes), kThreads, stream, d_bytes, g, text,
               rows * text.count, d);
  STAVE_LAUNCH(stave_embed_gradient_positions, blocks_for(text.count * d), kThreads, stream, d_positions, g, text.count,
               rows, d);
}

void cross_entropy(float* logits, Text targets, std::size_t n, std::size_t classes, float scale, double* losses,
                   cudaStream_t stream) {
  STAVE_LAUNCH(stave_cross_entropy, static_cast<unsigned>(n), kThreads, stream, logits, targets, classes, scale,
               losses);
}

void sum(const double* values, std::size_t n, double* result, cudaStream_t stream) {
  STAVE_LAUNCH(stave_sum, 1, kThreads, stream, values, n, result);
}

}  // namespace stave::cuda
