// The CPU references of the CUDA kernels. What the executor's CPU stages compute with is the reference of each kernel that
// does the same; the others are plain loops.
#include "kernels/table.h"

#include <algorithm>
#include <cmath>

#include "executor/cpu/kernels.h"
#include "executor/cuda/kernels/kernels.h"

namespace stave::fake {

namespace {

using cuda::AdamScalars;
using cuda::Factor;
using cuda::Product;
using cuda::ProductShape;
using cuda::Text;
using std::size_t;

std::uint8_t token(const Text& text, size_t i) { return text.at[i / text.count * text.stride + i % text.count]; }

std::vector<std::uint8_t> tokens(const Text& text, size_t n) {
  std::vector<std::uint8_t> result;
  for (size_t i = 0; i < n; ++i) result.push_back(token(text, i));
  return result;
}

void embed(dim3, dim3, float* x, const float* bytes, const float* positions, Text text, size_t rows, size_t d) {
  for (size_t i = 0; i < rows * text.count; ++i)
    for (size_t j = 0; j < d; ++j) x[i * d + j] = bytes[token(text, i) * d + j] + positions[i % text.count * d + j];
}

void embed_gradient_bytes(dim3, dim3, float* d_bytes, const float* g, Text text, size_t n, size_t d) {
  for (size_t i = 0; i < n; ++i) stave::add(d_bytes + token(text, i) * d, g + i * d, d);
}

void embed_gradient_positions(dim3, dim3, float* d_positions, const float* g, size_t count, size_t rows, size_t d) {
  for (size_t r = 0; r < rows; ++r) stave::add(d_positions, g + r * count * d, count * d);
}

void layer_norm(dim3 grid, dim3, const float* x, const float* gain, const float* bias, size_t d, float* normal,
                float* inverse, float* y) {
  stave::layer_norm(x, gain, bias, grid.x, d, normal, inverse, y);
}

void layer_norm_input_gradient(dim3 grid, dim3, const float* dy, const float* normal, const float* inverse,
                               const float* gain, size_t d, float* dx) {
  stave::layer_norm_input_gradient(dy, normal, inverse, gain, grid.x, d, dx);
}

void layer_norm_weight_gradient(dim3, dim3, const float* dy, const float* normal, size_t n, size_t d, float* dgain,
                                float* dbias) {
  stave::layer_norm_weight_gradient(dy, normal, n, d, dgain, dbias);
}

void sum_rows(dim3, dim3, const float* dy, size_t n, size_t d, float* sums) { stave::sum_rows(dy, n, d, sums); }

void gelu(dim3, dim3, const float* x, size_t n, float* y) { stave::gelu(x, n, y); }

void gelu_gradient(dim3, dim3, const float* dy, size_t n, float* x) { stave::gelu_gradient(dy, n, x); }

void add(dim3, dim3, float* a, const float* b, size_t n) { stave::add(a, b, n); }

void scale(dim3, dim3, float* x, size_t n, float factor) {
  for (size_t i = 0; i < n; ++i) x[i] *= factor;
}

// All in the first part.
void sum_of_squares(dim3 grid, dim3, const float* x, size_t n, double* parts) {
  std::fill(parts, parts + grid.x, 0.0);
  for (size_t i = 0; i < n; ++i) parts[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
}

void copy_rows(dim3, dim3, float* to, size_t to_stride, const float* from, size_t from_stride, size_t rows,
               size_t width) {
  for (size_t i = 0; i < rows; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, width * sizeof(float));
}

// By the value's distance from its two neighbours, not by its bits as the kernel does.
void to_bfloat16(dim3, dim3, const float* x, size_t n, std::uint16_t* y) {
  for (size_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    const auto below = static_cast<std::uint16_t>(bits >> 16);
    const std::uint32_t rest = bits & 0xFFFFu;
    const bool is_nan = x[i] != x[i];
    const bool up = rest > 0x8000u || (rest == 0x8000u && below % 2 == 1);
    y[i] = static_cast<std::uint16_t>(is_nan ? 0x7FC0u : below + (up ? 1u : 0u));
  }
}

void batched_product(dim3, dim3, ProductShape shape, Factor a, Factor b, Product c) {
  const auto element = [](const Factor& f, size_t row, size_t head, size_t i, size_t j) {
    if (f.transposed) std::swap(i, j);
    return f.at[row * f.row_stride + head * f.head_stride + i * f.stride + j];
  };
  std::vector<float> sums(shape.n);
  for (size_t row = 0; row < shape.rows; ++row) {
    for (size_t head = 0; head < shape.heads; ++head) {
      for (size_t i = 0; i < shape.m; ++i) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (size_t l = 0; l < shape.k; ++l) {
          const float x = element(a, row, head, i, l);
          for (size_t j = 0; j < shape.n; ++j) sums[j] += x * element(b, row, head, l, j);
        }
        float* to = c.at + row * c.row_stride + head * c.head_stride + i * c.stride;
        for (size_t j = 0; j < shape.n; ++j) to[j] = c.beta == 0 ? sums[j] : c.beta * to[j] + sums[j];
      }
    }
  }
}

void causal_softmax(dim3 grid, dim3, float* scores, size_t t, size_t before, float scale) {
  for (size_t i = 0; i < grid.x / t; ++i) stave::causal_softmax(scores + i * t * (before + t), t, before, scale);
}

void causal_softmax_gradient(dim3 grid, dim3, const float* p, float* dp, size_t t, size_t before, float scale) {
  const size_t each = t * (before + t);
  for (size_t i = 0; i < grid.x / t; ++i)
    stave::causal_softmax_gradient(p + i * each, dp + i * each, t, before, scale);
}

void cross_entropy(dim3 grid, dim3, float* logits, Text targets, size_t classes, float scale, double* losses) {
  const std::vector<std::uint8_t> wanted = tokens(targets, grid.x);
  for (size_t i = 0; i < grid.x; ++i)
    losses[i] = stave::cross_entropy(logits + i * classes, &wanted[i], 1, classes, scale);
}

void sum(dim3, dim3, const double* values, size_t n, double* result) {
  *result = 0;
  for (size_t i = 0; i < n; ++i) *result += values[i];
}

void advance(dim3, dim3, AdamScalars* scalars) {
  const auto updates = static_cast<double>(++scalars->updates);
  scalars->first_scale = static_cast<float>(1.0 / (1.0 - std::pow(0.9, updates)));
  scalars->second_scale = static_cast<float>(1.0 / (1.0 - std::pow(0.99, updates)));
}

void adam(dim3, dim3, float* value, const float* gradient, float* first, float* second, size_t n,
          const AdamScalars* scalars) {
  stave::adam(value, gradient, first, second, n, scalars->learning_rate, scalars->updates);
}

}  // namespace

std::span<const Kernel> kernels() {
  static const std::vector<Kernel> all = {
      kernel<embed>("stave_embed"),
      kernel<embed_gradient_bytes>("stave_embed_gradient_bytes"),
      kernel<embed_gradient_positions>("stave_embed_gradient_positions"),
      kernel<layer_norm>("stave_layer_norm"),
      kernel<layer_norm_input_gradient>("stave_layer_norm_input_gradient"),
      kernel<layer_norm_weight_gradient>("stave_layer_norm_weight_gradient"),
      kernel<sum_rows>("stave_sum_rows"),
      kernel<gelu>("stave_gelu"),
      kernel<gelu_gradient>("stave_gelu_gradient"),
      kernel<add>("stave_add"),
      kernel<scale>("stave_scale"),
      kernel<sum_of_squares>("stave_sum_of_squares"),
      kernel<copy_rows>("stave_copy_rows"),
      kernel<to_bfloat16>("stave_to_bfloat16"),
      kernel<batched_product>("stave_batched_product"),
      kernel<causal_softmax>("stave_causal_softmax"),
      kernel<causal_softmax_gradient>("stave_causal_softmax_gradient"),
      kernel<cross_entropy>("stave_cross_entropy"),
      kernel<sum>("stave_sum"),
      kernel<advance>("stave_advance"),
      kernel<adam>("stave_adam"),
  };
  return all;
}

}  // namespace stave::fake
