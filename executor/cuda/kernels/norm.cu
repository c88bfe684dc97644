// Layer norm and sums over rows. A row is a block's; a column of sums is one thread's in each of kLanes rows of threads.
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/launch.h"

namespace stave::cuda {

namespace {

constexpr float kEpsilon = 1e-5f;
constexpr unsigned kColumns = 32;
constexpr unsigned kLanes = 8;

}  // namespace

extern "C" __global__ void stave_layer_norm(const float* x, const float* gain, const float* bias, std::size_t d,
                                            float* normal, float* inverse, float* y) {
  __shared__ float shared[kThreads];
  const std::size_t begin = std::size_t{blockIdx.x} * d;
  const float* row = x + begin;
  float sum = 0;
  for (std::size_t j = threadIdx.x; j < d; j += blockDim.x) sum += row[j];
  const float mean = block_sum(sum, shared) / static_cast<float>(d);
  float squares = 0;
  for (std::size_t j = threadIdx.x; j < d; j += blockDim.x) squares += (row[j] - mean) * (row[j] - mean);
  const float scale = 1.0f / sqrtf(block_sum(squares, shared) / static_cast<float>(d) + kEpsilon);
  if (threadIdx.x == 0) inverse[blockIdx.x] = scale;
  for (std::size_t j = threadIdx.x; j < d; j += blockDim.x) {
    const float value = (row[j] - mean) * scale;
    normal[begin + j] = value;
    y[begin + j] = value * gain[j] + bias[j];
  }
}

extern "C" __global__ void stave_layer_norm_input_gradient(const float* dy, const float* normal, const float* inverse,
                                                           const float* gain, std::size_t d, float* dx) {
  __shared__ float shared[kThreads];
  const std::size_t begin = std::size_t{blockIdx.x} * d;
  float sum = 0;
  float product = 0;
  for (std::size_t j = threadIdx.x; j < d; j += blockDim.x) {
    const float g = dy[begin + j] * gain[j];
    sum += g;
    product += g * normal[begin + j];
  }
  sum = block_sum(sum, shared) / static_cast<float>(d);
  product = block_sum(product, shared) / static_cast<float>(d);
  const float scale = inverse[blockIdx.x];
  for (std::size_t j = threadIdx.x; j < d; j += blockDim.x)
    dx[begin + j] += scale * (dy[begin + j] * gain[j] - sum - normal[begin + j] * product);
}

extern "C" __global__ void stave_layer_norm_weight_gradient(const float* dy, const float* normal, std::size_t n,
                                                            std::size_t d, float* dgain, float* dbias) {
  __shared__ float gains[kLanes][kColumns];
  __shared__ float biases[kLanes][kColumns];
  const std::size_t j = std::size_t{blockIdx.x} * kColumns + threadIdx.x;
  float gain = 0;
  float bias = 0;
  if (j < d) {
    for (std::size_t i = threadIdx.y; i < n; i += kLanes) {
      gain += dy[i * d + j] * normal[i * d + j];
      bias += dy[i * d + j];
    }
  }
  gains[threadIdx.y][threadIdx.x] = gain;
  biases[threadIdx.y][threadIdx.x] = bias;
  __syncthreads();
  if (threadIdx.y != 0 || j >= d) return;
  for (unsigned lane = 1; lane < kLanes; ++lane) {
    gain += gains[lane][threadIdx.x];
    bias += biases[lane][threadIdx.x];
  }
  dgain[j] = gain;
  dbias[j] = bias;
}

extern "C" __global__ void stave_sum_rows(const float* dy, std::size_t n, std::size_t d, float* sums) {
  __shared__ float lanes[kLanes][kColumns];
  const std::size_t j = std::size_t{blockIdx.x} * kColumns + threadIdx.x;
  float sum = 0;
  if (j < d)
    for (std::size_t i = threadIdx.y; i < n; i += kLanes) sum += dy[i * d + j];
  lanes[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || j >= d) return;
  for (unsigned lane = 1; lane < kLanes; ++lane) sum += lanes[lane][threadIdx.x];
  sums[j] = sum;
}

void layer_norm(const float* x, const float* gain, const float* bias, std::size_t n, std::size_t d, float* normal,
                float* inverse, float* y, cudaStream_t stream) {
  STAVE_LAUNCH(stave_layer_norm, static_cast<unsigned>(n), kThreads, stream, x, gain, bias, d, normal, inverse, y);
}

void layer_norm_input_gradient(const float* dy, const float* normal, const float* inverse, const float* gain,
                               std::size_t n, std::size_t d, float* dx, cudaStream_t stream) {
  STAVE_LAUNCH(stave_layer_norm_input_gradient, static_cast<unsigned>(n), kThreads, stream, dy, normal, inverse, gain,
               d, dx);
}

void layer_norm_weight_gradient(const float* dy, const float* normal, std::size_t n, std::size_t d, float* dgain,
                                float* dbias, cudaStream_t stream) {
  STAVE_LAUNCH(stave_layer_norm_weight_gradient, blocks_for(d, kColumns), dim3(kColumns, kLanes), stream, dy, normal, n,
               d, dgain, dbias);
}

void sum_rows(const float* dy, std::size_t n, std::size_t d, float* sums, cudaStream_t stream) {
  STAVE_LAUNCH(stave_sum_rows, blocks_for(d, kColumns), dim3(kColumns, kLanes), stream, dy, n, d, sums);
}

}  // namespace stave::cuda
