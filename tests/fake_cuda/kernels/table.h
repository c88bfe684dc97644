// The kernels that the stand-in for the CUDA runtime knows, by name, each with its CPU reference. A launch of a name that
// is not here is an error.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <vector_types.h>

namespace stave::fake {

struct Kernel {
  /// As __cudaRegisterFunction has it: not mangled.
  const char* name = nullptr;
  /// arguments[i] points to the i-th argument, as for cudaLaunchKernel.
  void (*run)(dim3 grid, dim3 block, void** arguments) = nullptr;
  /// Of each argument: a launch copies them, and the kernel runs later.
  std::vector<std::size_t> argument_bytes;
};

/// All of them. Made once.
std::span<const Kernel> kernels();

namespace detail {
template <auto function>
struct Reference;
template <class... Args, void (*function)(dim3, dim3, Args...)>
struct Reference<function> {
  static void run(dim3 grid, dim3 block, void** arguments) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      function(grid, block, *static_cast<Args*>(arguments[i])...);
    }(std::index_sequence_for<Args...>());
  }
  static Kernel kernel(const char* name) { return {name, run, {sizeof(Args)...}}; }
};
}  // namespace detail

/// The entry for a reference `void f(dim3 grid, dim3 block, ARGUMENTS OF THE KERNEL...)`.
template <auto function>
Kernel kernel(const char* name) {
  return detail::Reference<function>::kernel(name);
}

}  // namespace stave::fake
