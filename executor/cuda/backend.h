// What the executor uses of CUDA: streams, events and memory as objects that release themselves. All throw
// std::runtime_error with CUDA's text.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

#include "executor/memory.h"

namespace stave {

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct DestroyGraph {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using StreamOwner = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using EventOwner = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
using GraphOwner = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

/// A stream of the current GPU that does not wait for the default one; computing has the lowest priority, messages the
/// highest.
StreamOwner make_stream(bool computes);
EventOwner make_event(bool has_time);

/// Memory of the current GPU, or of the host where both reach it; copies go in order on a stream.
class CudaMemory : public Memory {
 public:
  CudaMemory(cudaStream_t stream, bool on_host) : stream_(stream), on_host_(on_host) {}

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* data) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void clear(std::byte* data, std::size_t bytes) override;
  /// Whether NCCL may register what was allocated at `data`: ordinary memory is not safe to.
  virtual bool may_register(const std::byte*) const { return false; }

 private:
  cudaStream_t stream_;
  bool on_host_;
};

}  // namespace stave
