// CudaWorkload: a Workload whose stages do not compute when they are called but enqueue what they compute on the stream
// of their device. All pointers given to them, inputs, outputs and stashes, are memory of the GPU.
//
// A stage may hold a stream up by nothing but work on it: no allocation, no sync and nothing on the default stream after
// create(). With --graph iter the ops of a table are enqueued once and replayed ever after; so begin_step, which is
// called before every replay, puts what changes from step to step (tokens, learning rate, step counters) into fixed
// places of the GPU's memory. settle, parameters, state and loss are called after a sync of all streams.
#pragma once

#include <span>

#include "executor/stage/stage.h"

struct CUstream_st;

namespace stave {

/// CUDA's own name for it is cudaStream_t.
using CudaStream = CUstream_st*;

class CudaWorkload : public Workload {
 public:
  /// Shape: by device, null of those that are not here. Called before create(); they outlive the stages.
  virtual void use_streams(std::span<const CudaStream> compute) = 0;
  /// Stages run on the host: slots must lie in memory that both it and the GPU reach.
  virtual bool reads_on_host() const { return false; }
  /// Enqueues: the gradients of all replicas here of a stage become their sum, added in the order of their devices.
  virtual void enqueue_sum(StageId s, CudaStream stream) = 0;
};

}  // namespace stave
