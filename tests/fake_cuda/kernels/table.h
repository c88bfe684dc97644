// The CPU references of the CUDA kernels, by name: what the stand-in of the CUDA runtime runs when a kernel is launched.
#pragma once

#include <vector_types.h>

#include <span>

namespace stave::fake {

struct Kernel {
  /// As __cudaRegisterFunction has it: not mangled.
  const char* name;
  /// args[i] points to the i-th argument, as for cudaLaunchKernel.
  void (*run)(dim3 grid, dim3 block, void** args);
};

std::span<const Kernel> kernels();

}  // namespace stave::fake
