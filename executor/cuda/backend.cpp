#include "executor/cuda/backend.h"

#include <cstring>
#include <new>

#include "executor/cuda/check.h"

namespace stave {

StreamOwner make_stream(bool computes) {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, computes ? least : greatest),
        "cudaStreamCreateWithPriority");
  return StreamOwner(stream);
}

EventOwner make_event(bool has_time) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, has_time ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  return EventOwner(event);
}

std::byte* CudaMemory::allocate(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status =
      on_host_ ? cudaHostAlloc(&data, bytes, cudaHostAllocPortable) : cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) throw std::bad_alloc();
  check(status, on_host_ ? "cudaHostAlloc" : "cudaMalloc");
  if (on_host_) {
    std::memset(data, 0, bytes);
  } else {
    check(cudaMemset(data, 0, bytes), "cudaMemset");
  }
  return static_cast<std::byte*>(data);
}

void CudaMemory::release(std::byte* data) {
  if (on_host_) {
    cudaFreeHost(data);
  } else {
    cudaFree(data);
  }
}

void CudaMemory::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
}

void CudaMemory::clear(std::byte* data, std::size_t bytes) {
  if (bytes != 0) check(cudaMemsetAsync(data, 0, bytes, stream_), "cudaMemsetAsync");
}

}  // namespace stave
