// Matrix products where oneDNN is missing: plain loops that GCC makes vectors of, for the processor found at run time.
#include <algorithm>
#include <vector>

#include "executor/cpu/matmul.h"

namespace stave {

namespace {

// Rows of c computed together, so that a row of b is read once for all of them.
constexpr std::int64_t kRows = 4;

// As it lies, or copied so that it does.
const float* as_plain(Layout layout, std::int64_t rows, std::int64_t columns, const float* x, std::int64_t& ld,
                      std::vector<float>& copy) {
  if (layout == Layout::Plain) return x;
  copy.resize(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < columns; ++k) copy[static_cast<std::size_t>(i * columns + k)] = x[k * ld + i];
  ld = columns;
  return copy.data();
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void add_rows(
    std::int64_t rows, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
    float* c, std::int64_t ldc) {
  for (std::int64_t p = 0; p < k; ++p)
    for (std::int64_t i = 0; i < rows; ++i) {
      const float factor = a[i * lda + p];
      const float* from = b + p * ldb;
      float* to = c + i * ldc;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
    }
}

}  // namespace

void use_one_thread() {}

void matmul(Layout layout_a, Layout layout_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
            std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  thread_local std::vector<float> copy_a;
  thread_local std::vector<float> copy_b;
  a = as_plain(layout_a, m, k, a, lda, copy_a);
  b = as_plain(layout_b, k, n, b, ldb, copy_b);
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = c + i * ldc;
    if (beta == 0) std::fill(row, row + n, 0.0f);
    else if (beta != 1) std::transform(row, row + n, row, [beta](float x) { return beta * x; });
  }
  for (std::int64_t i = 0; i < m; i += kRows)
    add_rows(std::min(kRows, m - i), n, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc);
}

}  // namespace stave
