#include "executor/cuda/matmul.h"

#include <cublasLt.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "executor/aligned.h"
#include "executor/cuda/kernels/kernels.h"

namespace stave {

namespace {

// What NVIDIA's documentation of cuBLAS recommends for Hopper; others use less of it.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

void check(cublasStatus_t status, const std::string& what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(what + ": " + cublasLtGetStatusString(status));
}

std::string text_of(const MatmulShape& s) {
  return "matrix product of " + std::to_string(s.m) + " x " + std::to_string(s.k) + " by " + std::to_string(s.k) +
         " x " + std::to_string(s.n);
}

}  // namespace

struct CudaMatmul::Plan {
  MatmulShape shape;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t c = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

CudaMatmul::CudaMatmul(Precision precision) : precision_(precision) {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "cublasLtCreate");
  handle_ = handle;
}

CudaMatmul::~CudaMatmul() {
  for (const Plan& plan : plans_) {
    cublasLtMatmulDescDestroy(plan.operation);
    for (cublasLtMatrixLayout_t each : {plan.a, plan.b, plan.c}) cublasLtMatrixLayoutDestroy(each);
  }
  cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_));
}

// cuBLASLt counts by columns, so that a row-major matrix is its transpose there: c^T = op(b)^T op(a)^T, and the factors
// change places. A bias is then added to each column, which is what cuBLASLt's epilogue does.
std::size_t CudaMatmul::plan(const MatmulShape& shape) {
  const auto known = std::ranges::find_if(plans_, [&](const Plan& each) { return each.shape == shape; });
  if (known != plans_.end()) return static_cast<std::size_t>(known - plans_.begin());
  const std::string what = text_of(shape);
  Plan& plan = plans_.emplace_back();
  plan.shape = shape;
  check(cublasLtMatmulDescCreate(&plan.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), what);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(plan.operation, attribute, &value, sizeof value), what);
  };
  const auto operation = [](Layout layout) { return layout == Layout::Plain ? CUBLAS_OP_N : CUBLAS_OP_T; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.layout_b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.layout_a));
  if (shape.has_bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  const auto layout = [&](cublasLtMatrixLayout_t& to, cudaDataType_t type, Layout lies, std::size_t rows,
                          std::size_t columns) {
    if (lies == Layout::Transposed) std::swap(rows, columns);
    check(cublasLtMatrixLayoutCreate(&to, type, columns, rows, static_cast<std::int64_t>(columns)), what);
  };
  const cudaDataType_t factor = precision_ == Precision::Float32 ? CUDA_R_32F : CUDA_R_16BF;
  layout(plan.a, factor, shape.layout_b, shape.k, shape.n);
  layout(plan.b, factor, shape.layout_a, shape.m, shape.k);
  layout(plan.c, CUDA_R_32F, Layout::Plain, shape.m, shape.n);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), what);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  try {
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), what);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
    for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(attribute, std::uint32_t{kAlignment});
    check(cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(handle_), plan.operation, plan.a, plan.b, plan.c,
                                         plan.c, preference, 1, &found, &count),
          what);
  } catch (...) {
    cublasLtMatmulPreferenceDestroy(preference);
    throw;
  }
  cublasLtMatmulPreferenceDestroy(preference);
  if (count == 0) throw std::runtime_error(what + ": cuBLASLt knows no way to compute it");
  plan.algorithm = found.algo;
  return plans_.size() - 1;
}

void CudaMatmul::allocate() {
  if (workspace_.size() == 0) workspace_ = DeviceBytes(kWorkspaceBytes);
  if (precision_ == Precision::Float32 || rounded_a_.size() != 0) return;
  std::size_t a = 0;
  std::size_t b = 0;
  for (const Plan& plan : plans_) {
    a = std::max(a, plan.shape.m * plan.shape.k);
    b = std::max(b, plan.shape.k * plan.shape.n);
  }
  rounded_a_ = DeviceBytes(a * sizeof(std::uint16_t));
  rounded_b_ = DeviceBytes(b * sizeof(std::uint16_t));
}

void CudaMatmul::run(std::size_t number, const float* a, const float* b, const float* bias, float* c,
                     cudaStream_t stream) {
  const Plan& plan = plans_[number];
  const MatmulShape& shape = plan.shape;
  const void* factor_a = a;
  const void* factor_b = b;
  if (precision_ == Precision::BFloat16) {
    auto* rounded_a = reinterpret_cast<std::uint16_t*>(rounded_a_.data());
    auto* rounded_b = reinterpret_cast<std::uint16_t*>(rounded_b_.data());
    cuda::to_bfloat16(a, shape.m * shape.k, rounded_a, stream);
    cuda::to_bfloat16(b, shape.k * shape.n, rounded_b, stream);
    factor_a = rounded_a;
    factor_b = rounded_b;
  }
  // Plans are shared by all layers of a shape, their biases are not.
  if (shape.has_bias &&
      cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias) !=
          CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(text_of(shape) + ": cuBLASLt takes no bias");
  const float one = 1;
  const cublasStatus_t status =
      cublasLtMatmul(static_cast<cublasLtHandle_t>(handle_), plan.operation, &one, factor_b, plan.a, factor_a, plan.b,
                     &shape.beta, c, plan.c, c, plan.c, &plan.algorithm, workspace_.data(), workspace_.size(), stream);
  if (status != CUBLAS_STATUS_SUCCESS) check(status, text_of(shape));
}

}  // namespace stave
