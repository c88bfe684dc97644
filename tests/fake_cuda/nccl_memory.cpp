#include "nccl_memory.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "stand_in.h"

namespace stave::fake {

namespace {

// A message without data, and what connections are warmed up with.
constexpr std::size_t kFewBytes = 4;

struct Range {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool holds(const void* other, std::size_t count) const {
    const auto* first = static_cast<const std::byte*>(other);
    return first >= data && count <= bytes && first - data <= static_cast<std::ptrdiff_t>(bytes - count);
  }
};

struct Registered {
  ncclComm_t communicator = nullptr;
  Range range;
};

struct Memory {
  std::mutex mutex;
  std::map<const void*, Range> blocks;
  std::map<const void*, std::unique_ptr<Registered>> registered;
};

Memory& memory() {
  static auto* const all = new Memory;
  return *all;
}

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

ncclResult_t misuse(const char* what) {
  cudaStandInMisuse("NCCL", what);
  return ncclInvalidUsage;
}

// After everything else of the process.
struct AtEnd {
  ~AtEnd() {
    if (!memory().registered.empty()) misuse("memory is still registered at the end");
    if (!memory().blocks.empty()) misuse("memory of ncclMemAlloc is not released at the end");
  }
} const at_end;

}  // namespace

bool may_carry(ncclComm_t communicator, const void* data, std::size_t bytes) {
  static const bool must = is_set("FAKE_NCCL_ALL_REGISTERED");
  if (!must || bytes <= kFewBytes) return true;
  const std::scoped_lock lock(memory().mutex);
  for (const auto& [handle, each] : memory().registered)
    if (each->communicator == communicator && each->range.holds(data, bytes)) return true;
  misuse("a transfer from or to memory that its communicator has not registered");
  return false;
}

void forget(ncclComm_t communicator, bool aborts) {
  const std::scoped_lock lock(memory().mutex);
  const auto of_it = [&](const auto& each) { return each.second->communicator == communicator; };
  if (std::erase_if(memory().registered, of_it) != 0 && !aborts) misuse("a communicator destroyed with memory registered");
}

}  // namespace stave::fake

using namespace stave::fake;

extern "C" {

ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  if (is_set("FAKE_NCCL_NO_MEMORY")) return ncclUnhandledCudaError;
  if (cudaMalloc(data, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  const std::scoped_lock lock(memory().mutex);
  memory().blocks[*data] = {static_cast<const std::byte*>(*data), bytes};
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* data) {
  {
    const std::scoped_lock lock(memory().mutex);
    const auto at = memory().blocks.find(data);
    if (at == memory().blocks.end()) return misuse("memory released that is not of ncclMemAlloc, or twice");
    for (const auto& [handle, each] : memory().registered)
      if (at->second.holds(each->range.data, each->range.bytes)) return misuse("memory released that is registered");
    memory().blocks.erase(at);
  }
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void* data, size_t bytes, void** handle) {
  if (is_set("FAKE_NCCL_NO_REGISTER")) return ncclSystemError;
  const std::scoped_lock lock(memory().mutex);
  bool is_known = false;
  for (const auto& [at, block] : memory().blocks) is_known = is_known || block.holds(data, bytes);
  if (!is_known) return misuse("memory registered that is not of ncclMemAlloc");
  auto made = std::make_unique<Registered>(Registered{communicator, {static_cast<const std::byte*>(data), bytes}});
  *handle = made.get();
  memory().registered[*handle] = std::move(made);
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void* handle) {
  const std::scoped_lock lock(memory().mutex);
  const auto at = memory().registered.find(handle);
  if (at == memory().registered.end() || at->second->communicator != communicator)
    return misuse("memory deregistered that is not registered, or twice");
  memory().registered.erase(at);
  return ncclSuccess;
}

}  // extern "C"
