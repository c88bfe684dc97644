// A stand-in for cuBLASLt: the functions that executor/cuda/matmul.cpp calls, computing on the CPU in stream order. It
// holds a program to what it has told the heuristic: a plan used for another product, or memory on a lesser boundary than
// promised, is an error. Factors are fp32 or bf16, sums and results fp32.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kept.h"
#include "stand_in.h"
#include "executor/cpu/matmul.h"

namespace {

using stave::Layout;

struct Description {
  cublasOperation_t a = CUBLAS_OP_N;
  cublasOperation_t b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Matrix {
  cudaDataType_t type = CUDA_R_32F;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t stride = 0;
};

struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_MASK;
  // Of a, b, c, d.
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

// What lies in the opaque algorithm: the product that it is for.
struct Algorithm {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint32_t operations = 0;
  std::uint32_t alignment[4] = {};
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Description& of(cublasLtMatmulDesc_t d) { return *reinterpret_cast<Description*>(d); }
Matrix& of(cublasLtMatrixLayout_t m) { return *reinterpret_cast<Matrix*>(m); }
Preference& of(cublasLtMatmulPreference_t p) { return *reinterpret_cast<Preference*>(p); }

cublasStatus_t wrong(const char* what) {
  cudaStandInMisuse("cuBLASLt", what);
  return CUBLAS_STATUS_INVALID_VALUE;
}

Algorithm product_of(const Description& d, const Matrix& a, const Matrix& c) {
  return {c.rows, c.columns, d.a == CUBLAS_OP_N ? a.columns : a.rows,
          static_cast<std::uint32_t>(d.a) * 256 + static_cast<std::uint32_t>(d.b) * 16 +
              static_cast<std::uint32_t>(d.epilogue), {}};
}

struct Call {
  Description description;
  Matrix a, b, c;
  Algorithm product;
  const void* a_at = nullptr;
  const void* b_at = nullptr;
  float* c_at = nullptr;
  float beta = 0;
  bool kept = false;
};

// As fp32, in `memory` if it is not.
const float* values(const Matrix& m, const void* at, std::vector<float>& memory) {
  if (m.type == CUDA_R_32F) return static_cast<const float*>(at);
  memory.resize(static_cast<std::size_t>(m.stride) * m.columns);
  const auto* from = static_cast<const std::uint16_t*>(at);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(from[i]) << 16;
    std::memcpy(&memory[i], &bits, sizeof bits);
  }
  return memory.data();
}

// Column by column is row by row of the transpose, so that the factors change places.
void compute(void* data) {
  std::unique_ptr<Call> call(static_cast<Call*>(data));
  const Description& d = call->description;
  const Algorithm& p = call->product;
  std::vector<float> a_memory, b_memory;
  const auto layout = [](cublasOperation_t o) { return o == CUBLAS_OP_N ? Layout::Plain : Layout::Transposed; };
  stave::matmul(layout(d.b), layout(d.a), static_cast<std::int64_t>(p.n), static_cast<std::int64_t>(p.m),
                static_cast<std::int64_t>(p.k), values(call->b, call->b_at, b_memory), call->b.stride,
                values(call->a, call->a_at, a_memory), call->a.stride, call->beta, call->c_at, call->c.stride);
  const auto* bias = static_cast<const float*>(d.bias);
  for (std::size_t j = 0; d.epilogue == CUBLASLT_EPILOGUE_BIAS && j < p.n; ++j)
    for (std::size_t i = 0; i < p.m; ++i) call->c_at[j * static_cast<std::size_t>(call->c.stride) + i] += bias[i];
  cudaStandInLast(cudaStandInKernelNs());
  // A captured call is made again with every replay.
  if (call->kept) call.release();
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality requested is not supported";
    default: return "another error";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute_type,
                                        cudaDataType_t scale) {
  if (compute_type != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Description);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete reinterpret_cast<Description*>(description);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
  const auto set = [&](auto& to) {
    if (bytes != sizeof to) return wrong("an attribute of another size");
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(of(description).a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(of(description).b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(of(description).epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(of(description).bias);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  if (type != CUDA_R_32F && type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (rows == 0 || columns == 0 || stride < static_cast<std::int64_t>(rows)) return wrong("a matrix that has no such layout");
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Matrix{type, rows, columns, stride});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix) {
  delete reinterpret_cast<Matrix*>(matrix);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* value,
                                                    std::size_t bytes) {
  Preference& p = of(preference);
  const auto set = [&](auto& to) {
    if (bytes != sizeof to) return wrong("a preference of another size");
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(p.workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(p.reduction);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(p.alignment[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(p.alignment[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(p.alignment[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(p.alignment[3]);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  *count = 0;
  const Matrix& left = of(a);
  const Matrix& right = of(b);
  const Description& operation = of(description);
  Algorithm product = product_of(operation, left, of(c));
  const bool plain_b = operation.b == CUBLAS_OP_N;
  if ((operation.a == CUBLAS_OP_N ? left.rows : left.columns) != product.m ||
      (plain_b ? right.columns : right.rows) != product.n || (plain_b ? right.rows : right.columns) != product.k)
    return wrong("a product of matrices that do not fit");
  if (left.type != right.type || of(c).type != CUDA_R_32F || c != d || wanted < 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (of(preference).reduction != CUBLASLT_REDUCTION_SCHEME_NONE)
    return wrong("a plan that may split inner sums is not reproducible");
  std::memcpy(product.alignment, of(preference).alignment, sizeof product.alignment);
  *found = {};
  std::memcpy(&found->algo, &product, sizeof product);
  found->state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a_at,
                              cublasLtMatrixLayout_t a, const void* b_at, cublasLtMatrixLayout_t b, const void* beta,
                              const void* c_at, cublasLtMatrixLayout_t c, void* d_at, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algorithm, void*, std::size_t, cudaStream_t stream) {
  float factor = 0;
  std::memcpy(&factor, alpha, sizeof factor);
  if (factor != 1 || c != d || c_at != d_at || algorithm == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm planned;
  std::memcpy(static_cast<void*>(&planned), algorithm, sizeof planned);
  const Algorithm product = product_of(of(description), of(a), of(c));
  if (product.m != planned.m || product.n != planned.n || product.k != planned.k ||
      product.operations != planned.operations)
    return wrong("a plan used for another product");
  const std::pair<const void*, std::uint32_t> memory[] = {
      {a_at, planned.alignment[0]}, {b_at, planned.alignment[1]}, {c_at, planned.alignment[2]}};
  for (const auto& [at, alignment] : memory)
    if (at == nullptr || reinterpret_cast<std::uintptr_t>(at) % alignment != 0)
      return wrong("memory on a lesser boundary than its plan was promised");
  auto call = std::make_unique<Call>(
      Call{of(description), of(a), of(b), of(c), product, a_at, b_at, static_cast<float*>(d_at), 0, false});
  std::memcpy(&call->beta, beta, sizeof call->beta);
  if (call->description.epilogue == CUBLASLT_EPILOGUE_BIAS && call->description.bias == nullptr)
    return wrong("no bias to add");
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  call->kept = capturing != cudaStreamCaptureStatusNone;
  if (cudaLaunchHostFunc(stream, compute, call.get()) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (capturing != cudaStreamCaptureStatusNone)
    stave::fake::keep(std::move(call));
  else
    call.release();
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
