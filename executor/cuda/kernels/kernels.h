// The kernels of a transformer on a GPU, in fp32, each with its backward: they compute what executor/cpu/kernels.h does,
// and the products of attention. Matrix products with weights are cuBLASLt's (executor/cuda/matmul.h).
// A function enqueues one kernel on the stream and returns; pointers are device memory. All are deterministic: every
// sum has one order, and nothing is added atomically. Throws std::runtime_error if a launch fails.
// Shapes: x[n][d] is n rows of d values, packed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stave::cuda {

/// Some tokens of each row of a batch of bytes. Token i of all is that at (i / count) * stride + i % count.
struct Text {
  const std::uint8_t* at = nullptr;
  /// Bytes of a row of the batch.
  std::size_t stride = 0;
  /// Tokens taken of each row.
  std::size_t count = 0;
};

/// x[tokens][d] = byte embedding + position embedding. Shapes: bytes[256][d], positions[text.count][d].
void embed(float* x, const float* bytes, const float* positions, Text text, std::size_t rows, std::size_t d,
           cudaStream_t stream);
/// Adds g[tokens][d] to the gradients of the embeddings, token after token.
void embed_gradient(float* d_bytes, float* d_positions, const float* g, Text text, std::size_t rows, std::size_t d,
                    cudaStream_t stream);

void layer_norm(const float* x, const float* gain, const float* bias, std::size_t n, std::size_t d, float* normal,
                float* inverse, float* y, cudaStream_t stream);
/// Adds to dx.
void layer_norm_input_gradient(const float* dy, const float* normal, const float* inverse, const float* gain,
                               std::size_t n, std::size_t d, float* dx, cudaStream_t stream);
void layer_norm_weight_gradient(const float* dy, const float* normal, std::size_t n, std::size_t d, float* dgain,
                                float* dbias, cudaStream_t stream);
/// sums[d] = sum over rows of dy[n][d].
void sum_rows(const float* dy, std::size_t n, std::size_t d, float* sums, cudaStream_t stream);

void gelu(const float* x, std::size_t n, float* y, cudaStream_t stream);
/// x[i] becomes dy[i] * gelu'(x[i]).
void gelu_gradient(const float* dy, std::size_t n, float* x, cudaStream_t stream);
/// a[i] += b[i].
void add(float* a, const float* b, std::size_t n, cudaStream_t stream);
/// x[i] *= factor.
void scale(float* x, std::size_t n, float factor, cudaStream_t stream);
/// *result = the sum of the squares of x[n]; parts[kSquareParts] is scratch.
inline constexpr unsigned kSquareParts = 256;
void sum_of_squares(const float* x, std::size_t n, double* parts, double* result, cudaStream_t stream);
/// Copies rows of `width` values between memories whose rows are apart by the strides given.
void copy_rows(float* to, std::size_t to_stride, const float* from, std::size_t from_stride, std::size_t rows,
               std::size_t width, cudaStream_t stream);
/// y[i] = x[i], rounded to the nearest bf16, ties to even.
void to_bfloat16(const float* x, std::size_t n, std::uint16_t* y, cudaStream_t stream);

/// A matrix for every row and head of a batch: element (i, j) at row * row_stride + head * head_stride + i * stride + j.
struct Factor {
  const float* at = nullptr;
  std::size_t row_stride = 0;
  std::size_t head_stride = 0;
  std::size_t stride = 0;
  bool transposed = false;
};
struct Product {
  float* at = nullptr;
  std::size_t row_stride = 0;
  std::size_t head_stride = 0;
  std::size_t stride = 0;
  float beta = 0;
};
/// How many products at once, and of what size: m x k by k x n.
struct ProductShape {
  std::uint32_t rows = 0;
  std::uint32_t heads = 0;
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
};
/// c = beta * c + op(a) op(b) for every row and head. At most 65535 * 64 for m and n.
void batched_product(ProductShape shape, Factor a, Factor b, Product c, cudaStream_t stream);

/// scores[batch][t][before + t]: row i becomes softmax(scale * row) over the columns up to before + i; the rest is 0.
void causal_softmax(float* scores, std::size_t batch, std::size_t t, std::size_t before, float scale,
                    cudaStream_t stream);
/// dp, the gradient of the softmax's output p, becomes that of its unscaled scores.
void causal_softmax_gradient(const float* p, float* dp, std::size_t batch, std::size_t t, std::size_t before,
                             float scale, cudaStream_t stream);

/// logits[n][classes] become the gradient of their cross-entropy times `scale`; losses[i] is that of token i, in nats.
void cross_entropy(float* logits, Text targets, std::size_t n, std::size_t classes, float scale, double* losses,
                   cudaStream_t stream);
/// *result = the sum of values[n].
void sum(const double* values, std::size_t n, double* result, cudaStream_t stream);

/// What an update reads of the step: in device memory, so that a captured step can be replayed.
struct AdamScalars {
  std::uint64_t updates = 0;
  float learning_rate = 0;
  /// Of the update under way: 1 / (1 - decay^updates).
  float first_scale = 0;
  float second_scale = 0;
};
/// Counts an update and makes its scales; what follows on the stream is that update.
void advance(AdamScalars* scalars, cudaStream_t stream);
/// Adam with decays 0.9 and 0.99. Kingma & Ba, ICLR 2015, arXiv:1412.6980.
void adam(float* value, const float* gradient, float* first, float* second, std::size_t n, const AdamScalars* scalars,
          cudaStream_t stream);

}  // namespace stave::cuda
