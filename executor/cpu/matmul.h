// Matrix products on the CPU, through oneDNN. Everything else a stage computes is in kernels.h.
#pragma once

#include <cstdint>

namespace stave {

/// Whether a factor is used as it lies or transposed.
enum class Layout : char { Plain = 'N', Transposed = 'T' };

/// Makes oneDNN use the calling thread alone; each thread that computes calls it once. Without it, every device would
/// start a team of its own, and a thread's CPU time would not be that of its op.
void use_one_thread();

/// c = beta * c + op(a) op(b), all row-major fp32.
///
/// Shape: op(a) is m x k, op(b) k x n, c m x n; lda, ldb, ldc are the distances between rows as they lie in memory.
/// Deterministic. Throws std::runtime_error with oneDNN's status.
void matmul(Layout layout_a, Layout layout_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
            std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);

}  // namespace stave
