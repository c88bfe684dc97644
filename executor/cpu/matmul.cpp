#include "executor/cpu/matmul.h"

#include <dnnl.h>
#include <omp.h>

#include <stdexcept>
#include <string>

namespace stave {

void use_one_thread() { omp_set_num_threads(1); }

void matmul(Layout layout_a, Layout layout_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
            std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  const dnnl_status_t status =
      dnnl_sgemm(static_cast<char>(layout_a), static_cast<char>(layout_b), m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success)
    throw std::runtime_error("oneDNN refused a matrix product with status " + std::to_string(status));
}

}  // namespace stave
