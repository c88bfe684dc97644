// What the objects that nvcc makes call when they are loaded and when they launch a kernel. Kernels are found by name in
// the table of CPU references; the code for GPUs that the objects hold is not looked at.
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "kernels/table.h"
#include "runtime.h"

using namespace stave::fake;

namespace {

struct Functions {
  std::mutex mutex;
  // By the address of the stub on the host.
  std::unordered_map<const void*, const Kernel*> all;
};

Functions& functions() {
  static Functions* const made = new Functions;
  return *made;
}

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> all;
  return all;
}

struct Arguments {
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> pointers;
};

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  const Kernel* found = nullptr;
  for (const Kernel& each : kernels())
    if (std::strcmp(each.name, name) == 0) found = &each;
  if (found == nullptr) std::fprintf(stderr, "fake CUDA: no CPU reference of kernel %s\n", name);
  const std::scoped_lock lock(functions().mutex);
  functions().all[stub] = found;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
  configurations().push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (configurations().empty()) return cudaErrorInvalidConfiguration;
  const Configuration& last = configurations().back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  configurations().pop_back();
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, std::size_t, cudaStream_t stream) {
  const Kernel* kernel = nullptr;
  {
    const std::scoped_lock lock(functions().mutex);
    const auto at = functions().all.find(stub);
    if (at != functions().all.end()) kernel = at->second;
  }
  if (kernel == nullptr) return misuse(cudaErrorInvalidDeviceFunction, "a launch of a kernel without a CPU reference");
  const auto copies = std::make_shared<Arguments>();
  for (std::size_t i = 0; i < kernel->argument_bytes.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(arguments[i]);
    copies->values.emplace_back(from, from + kernel->argument_bytes[i]);
    copies->pointers.push_back(copies->values.back().data());
  }
  return enqueue(stream, kernel->name, [=] {
    kernel->run(grid, block, copies->pointers.data());
    cudaStandInLast(cudaStandInKernelNs());
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t stub, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(stub, grid, block, arguments, shared, stream);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }

}  // extern "C"
