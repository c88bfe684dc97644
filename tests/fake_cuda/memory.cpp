// Memory of the stand-in: the heap. What is not allocated to be zero is filled with a pattern that computes to nonsense.
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "runtime.h"

using namespace stave::fake;

namespace {

constexpr std::size_t kBoundary = 256;
constexpr int kPattern = 0xb5;

std::mutex mutex;
std::unordered_set<void*>& blocks() {
  static auto* const all = new std::unordered_set<void*>;
  return *all;
}

cudaError_t take(void** data, std::size_t bytes) {
  if (thread_captures()) return misuse(cudaErrorStreamCaptureUnsupported, "an allocation inside a capture");
  *data = std::aligned_alloc(kBoundary, (bytes + kBoundary - 1) / kBoundary * kBoundary + kBoundary);
  if (*data == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*data, kPattern, bytes);
  const std::scoped_lock lock(mutex);
  blocks().insert(*data);
  return cudaSuccess;
}

cudaError_t give(void* data) {
  if (data == nullptr) return cudaSuccess;
  {
    const std::scoped_lock lock(mutex);
    if (blocks().erase(data) == 0) return misuse(cudaErrorInvalidValue, "memory released that was not allocated");
  }
  std::free(data);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, std::size_t bytes) { return take(data, bytes); }
cudaError_t cudaFree(void* data) { return give(data); }
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) { return take(data, bytes); }
cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return take(data, bytes); }
cudaError_t cudaFreeHost(void* data) { return give(data); }

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  *available = *total = setting("FAKE_CUDA_MEMORY", std::uint64_t{4} << 30);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  static const std::uint64_t least_ns = 1000 * setting("FAKE_CUDA_COPY_US", 0);
  static const std::uint64_t rate = setting("FAKE_CUDA_COPY_BYTES_PER_US", 0);
  return enqueue(stream, "a copy", [=] {
    std::memcpy(to, from, bytes);
    cudaStandInLast(least_ns + (rate == 0 ? 0 : 1000 * bytes / rate));
  });
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  return enqueue(stream, "a fill", [=] { std::memset(data, value, bytes); });
}

// Waits for everything, as a blocking copy does that no stream may overtake.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t error = cudaDeviceSynchronize()) return error;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  if (const cudaError_t error = cudaDeviceSynchronize()) return error;
  std::memset(data, value, bytes);
  return cudaSuccess;
}

}  // extern "C"
