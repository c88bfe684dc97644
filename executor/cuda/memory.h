// DeviceBytes and PinnedBytes: zeroed memory of a GPU, and memory of the host that a GPU copies from and to by itself.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "executor/cuda/check.h"

namespace stave {

class DeviceBytes {
 public:
  DeviceBytes() = default;
  /// On the GPU that is current. Waits for it; throws std::runtime_error, with the size if there is no such memory left.
  explicit DeviceBytes(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* at = nullptr;
    check(cudaMalloc(&at, size), ("cudaMalloc of " + std::to_string(size) + " bytes").c_str());
    data_.reset(static_cast<std::byte*>(at));
    check(cudaMemset(at, 0, size), "cudaMemset");
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  float* floats() const { return reinterpret_cast<float*>(data_.get()); }

 private:
  struct Free {
    void operator()(std::byte* p) const { cudaFree(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* at = nullptr;
    check(cudaMallocHost(&at, size), ("cudaMallocHost of " + std::to_string(size) + " bytes").c_str());
    data_.reset(static_cast<std::byte*>(at));
    std::memset(at, 0, size);
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { cudaFreeHost(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace stave
