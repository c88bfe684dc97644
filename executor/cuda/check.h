// check: what CUDA answers, as an exception where it is not success.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace stave {

/// Throws std::runtime_error with CUDA's text. `what` is the call, as the reader shall see it.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace stave
