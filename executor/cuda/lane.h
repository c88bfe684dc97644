// CudaLane: the GPU and the stream on which a device of the schedule computes.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "core/ids.h"

namespace stave {

struct CudaLane {
  /// As cudaSetDevice counts.
  int gpu = 0;
  cudaStream_t stream = nullptr;
};

using LaneOf = std::function<CudaLane(DeviceId)>;

}  // namespace stave
