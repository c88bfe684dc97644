// Kernels with a thread for each value, gelu, sums, copies and the optimizer; and the sum of all values' squares.
#include <cstring>

#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/launch.h"

namespace stave::cuda {

namespace {

constexpr float kGeluA = 1.59576912f;
constexpr float kGeluB = 0.0713548163f;
constexpr float kFirstDecay = 0.9f;
constexpr float kSecondDecay = 0.99f;

}  // namespace

// 1 + tanh(z) = 2 * sigmoid(2z), so gelu(x) = x * sigmoid(x * (a + b x^2)).
extern "C" __global__ void stave_gelu(const float* x, std::size_t n, float* y) {
  const std::size_t i = thread_index();
  if (i >= n) return;
  const float v = x[i];
  y[i] = v / (1.0f + expf(-v * (kGeluA + kGeluB * v * v)));
}

extern "C" __global__ void stave_gelu_gradient(const float* dy, std::size_t n, float* x) {
  const std::size_t i = thread_index();
  if (i >= n) return;
  const float v = x[i];
  const float sigmoid = 1.0f / (1.0f + expf(-v * (kGeluA + kGeluB * v * v)));
  x[i] = dy[i] * (sigmoid + v * sigmoid * (1.0f - sigmoid) * (kGeluA + 3.0f * kGeluB * v * v));
}

extern "C" __global__ void stave_add(float* a, const float* b, std::size_t n) {
  const std::size_t i = thread_index();
  if (i < n) a[i] += b[i];
}

extern "C" __global__ void stave_scale(float* x, std::size_t n, float factor) {
  const std::size_t i = thread_index();
  if (i < n) x[i] *= factor;
}

extern "C" __global__ void stave_sum_of_squares(const float* x, std::size_t n, double* parts) {
  __shared__ double shared[kThreads];
  double mine = 0;
  for (std::size_t i = thread_index(); i < n; i += std::size_t{gridDim.x} * blockDim.x)
    mine += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double all = block_sum(mine, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

extern "C" __global__ void stave_copy_rows(float* to, std::size_t to_stride, const float* from,
                                           std::size_t from_stride, std::size_t rows, std::size_t width) {
  const std::size_t i = thread_index();
  if (i < rows * width) to[i / width * to_stride + i % width] = from[i / width * from_stride + i % width];
}

extern "C" __global__ void stave_to_bfloat16(const float* x, std::size_t n, std::uint16_t* y) {
  const std::size_t i = thread_index();
  if (i >= n) return;
  std::uint32_t bits;
  memcpy(&bits, x + i, sizeof bits);
  // A NaN must not become an infinity.
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  y[i] = static_cast<std::uint16_t>(is_nan ? 0x7FC0u : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

extern "C" __global__ void stave_advance(AdamScalars* scalars) {
  const auto updates = static_cast<double>(++scalars->updates);
  scalars->first_scale = static_cast<float>(1.0 / (1.0 - pow(0.9, updates)));
  scalars->second_scale = static_cast<float>(1.0 / (1.0 - pow(0.99, updates)));
}

extern "C" __global__ void stave_adam(float* value, const float* gradient, float* first, float* second, std::size_t n,
                                      const AdamScalars* scalars) {
  const std::size_t i = thread_index();
  if (i >= n) return;
  const float g = gradient[i];
  const float m = kFirstDecay * first[i] + (1.0f - kFirstDecay) * g;
  const float v = kSecondDecay * second[i] + (1.0f - kSecondDecay) * g * g;
  first[i] = m;
  second[i] = v;
  value[i] -= scalars->learning_rate * (m * scalars->first_scale) / (sqrtf(v * scalars->second_scale) + 1e-8f);
}

void gelu(const float* x, std::size_t n, float* y, cudaStream_t stream) {
  STAVE_LAUNCH(stave_gelu, blocks_for(n), kThreads, stream, x, n, y);
}

void gelu_gradient(const float* dy, std::size_t n, float* x, cudaStream_t stream) {
  STAVE_LAUNCH(stave_gelu_gradient, blocks_for(n), kThreads, stream, dy, n, x);
}

void add(float* a, const float* b, std::size_t n, cudaStream_t stream) {
  STAVE_LAUNCH(stave_add, blocks_for(n), kThreads, stream, a, b, n);
}

void scale(float* x, std::size_t n, float factor, cudaStream_t stream) {
  STAVE_LAUNCH(stave_scale, blocks_for(n), kThreads, stream, x, n, factor);
}

void sum_of_squares(const float* x, std::size_t n, double* parts, double* result, cudaStream_t stream) {
  STAVE_LAUNCH(stave_sum_of_squares, kSquareParts, kThreads, stream, x, n, parts);
  sum(parts, kSquareParts, result, stream);
}

void copy_rows(float* to, std::size_t to_stride, const float* from, std::size_t from_stride, std::size_t rows,
               std::size_t width, cudaStream_t stream) {
  STAVE_LAUNCH(stave_copy_rows, blocks_for(rows * width), kThreads, stream, to, to_stride, from, from_stride, rows,
               width);
}

void to_bfloat16(const float* x, std::size_t n, std::uint16_t* y, cudaStream_t stream) {
  STAVE_LAUNCH(stave_to_bfloat16, blocks_for(n), kThreads, stream, x, n, y);
}

void advance(AdamScalars* scalars, cudaStream_t stream) { STAVE_LAUNCH(stave_advance, 1, 1, stream, scalars); }

void adam(float* value, const float* gradient, float* first, float* second, std::size_t n, const AdamScalars* scalars,
          cudaStream_t stream) {
  STAVE_LAUNCH(stave_adam, blocks_for(n), kThreads, stream, value, gradient, first, second, n, scalars);
}

}  // namespace stave::cuda
