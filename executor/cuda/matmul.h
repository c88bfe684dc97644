// CudaMatmul: the matrix products of one GPU with weights and their gradients, through cuBLASLt. Each shape is planned
// before the first step; a product is then one call. The products of attention are kernels of our own.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/cpu/matmul.h"
#include "executor/cuda/memory.h"

namespace stave {

/// What factors of the matrix products with weights are rounded to. Sums and all else are fp32.
enum class Precision : std::uint8_t { Float32, BFloat16 };

/// c = beta * c + op(a) op(b) + bias: packed, row-major. op(a) is m x k, op(b) k x n, the bias, added to each row, n.
struct MatmulShape {
  Layout layout_a = Layout::Plain;
  Layout layout_b = Layout::Plain;
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  float beta = 0;
  bool has_bias = false;
  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
};

/// All calls on one thread, all products on one stream at a time: they share memory.
class CudaMatmul {
 public:
  /// On the GPU that is current. Throws std::runtime_error with the text of cuBLASLt or CUDA, as all of it does.
  explicit CudaMatmul(Precision precision);
  ~CudaMatmul();
  CudaMatmul(const CudaMatmul&) = delete;
  CudaMatmul& operator=(const CudaMatmul&) = delete;

  /// Number of a shape, planned if it is new. The plan splits no inner sum, so that its order is always the same.
  std::size_t plan(const MatmulShape& shape);
  /// After the last plan(), before the first run(): takes the memory that they need.
  void allocate();
  /// Enqueues a product. Pointers are to fp32 on cache lines; `bias` is null unless the shape has one.
  void run(std::size_t plan, const float* a, const float* b, const float* bias, float* c, cudaStream_t stream);

 private:
  struct Plan;

  Precision precision_;
  // A cublasLtHandle_t; that header is for matmul.cpp alone.
  void* handle_ = nullptr;
  std::vector<Plan> plans_;
  DeviceBytes workspace_;
  // The factors, rounded; empty in fp32.
  DeviceBytes rounded_a_;
  DeviceBytes rounded_b_;
};

}  // namespace stave
