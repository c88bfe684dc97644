// What every file of kernels needs: how a kernel is launched, and sums over a block.
// A program may define STAVE_LAUNCH before, to run the kernels by other means.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "executor/cuda/check.h"

#ifndef STAVE_LAUNCH
#define STAVE_LAUNCH(kernel, grid, block, stream, ...)        \
  do {                                                        \
    kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__);    \
    ::stave::check(cudaGetLastError(), "launch of " #kernel); \
  } while (false)
#endif

namespace stave::cuda {

inline constexpr unsigned kThreads = 256;

/// Blocks of `each` that hold n; at least one, as a launch needs.
inline unsigned blocks_for(std::size_t n, std::size_t each = kThreads) {
  return n == 0 ? 1 : static_cast<unsigned>((n + each - 1) / each);
}

/// Number of the thread among all of a one-dimensional grid.
__device__ inline std::size_t thread_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

/// The sum of what all threads of a one-dimensional block hand in, for each of them; always in the same order.
/// Shape: shared[blockDim.x], a power of two.
template <typename T>
__device__ T block_sum(T value, T* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();
  return result;
}

/// The same for the greatest. No NaN is lost: where one is, the sum taken next is one too.
__device__ inline float block_max(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half && shared[threadIdx.x + half] > shared[threadIdx.x])
      shared[threadIdx.x] = shared[threadIdx.x + half];
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

}  // namespace stave::cuda
