// What executor/gpu.h asks for, by CUDA.
#pragma once

#include "executor/gpu.h"

namespace stave {

Result<std::unique_ptr<Gpu>> make_cuda_gpu(std::uint32_t devices, const GpuOptions& options);

}  // namespace stave
