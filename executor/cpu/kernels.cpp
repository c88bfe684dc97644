#include "executor/cpu/kernels.h"

#include <bit>
#include <cmath>

// One body, compiled for several processors; the loader picks. The sanitizers' runtime is not up when it does.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define STAVE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define STAVE_CLONES
#endif

namespace stave {

namespace {

constexpr float kEpsilon = 1e-5f;

// exp(x) to 2 units in the last place for |x| < 87, without a branch or a call, so that loops over it vectorize.
// 2^k * e^r with r in [-ln 2 / 2, ln 2 / 2], e^r by its series to the seventh power.
[[gnu::always_inline]] inline float exp_of(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 87.0f ? 87.0f : x;
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float k = shifted - 12582912.0f;
  float r = x - k * 0.693145752f;
  r = r - k * 1.42860677e-6f;
  float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // The low bits of `shifted` hold k; put k into the exponent.
  const std::uint32_t bits = (std::bit_cast<std::uint32_t>(shifted) + 127u) << 23;
  return p * std::bit_cast<float>(bits);
}

constexpr float kGeluA = 1.59576912f;
constexpr float kGeluB = 0.0713548163f;

}  // namespace

STAVE_CLONES void layer_norm(const float* __restrict x, const float* __restrict gain, const float* __restrict bias,
                             std::size_t n, std::size_t d, float* __restrict normal, float* __restrict inverse,
                             float* __restrict y) {
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = x + i * d;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < d; ++j) sum += row[j];
    const float mean = sum / static_cast<float>(d);
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::size_t j = 0; j < d; ++j) squares += (row[j] - mean) * (row[j] - mean);
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(d) + kEpsilon);
    inverse[i] = scale;
    float* normal_row = normal + i * d;
    float* y_row = y + i * d;
#pragma omp simd
    for (std::size_t j = 0; j < d; ++j) {
      const float value = (row[j] - mean) * scale;
      normal_row[j] = value;
      y_row[j] = value * gain[j] + bias[j];
    }
  }
}

STAVE_CLONES void layer_norm_input_gradient(const float* __restrict dy, const float* __restrict normal,
                                            const float* __restrict inverse, const float* __restrict gain,
                                            std::size_t n, std::size_t d, float* __restrict dx) {
  for (std::size_t i = 0; i < n; ++i) {
    const float* dy_row = dy + i * d;
    const float* normal_row = normal + i * d;
    float sum = 0;
    float product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (std::size_t j = 0; j < d; ++j) {
      const float g = dy_row[j] * gain[j];
      sum += g;
      product += g * normal_row[j];
    }
    sum /= static_cast<float>(d);
    product /= static_cast<float>(d);
    const float scale = inverse[i];
    float* dx_row = dx + i * d;
#pragma omp simd
    for (std::size_t j = 0; j < d; ++j) dx_row[j] += scale * (dy_row[j] * gain[j] - sum - normal_row[j] * product);
  }
}

STAVE_CLONES void layer_norm_weight_gradient(const float* __restrict dy, const float* __restrict normal, std::size_t n,
                                             std::size_t d, float* __restrict dgain, float* __restrict dbias) {
  for (std::size_t j = 0; j < d; ++j) dgain[j] = dbias[j] = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float* dy_row = dy + i * d;
    const float* normal_row = normal + i * d;
#pragma omp simd
    for (std::size_t j = 0; j < d; ++j) {
      dgain[j] += dy_row[j] * normal_row[j];
      dbias[j] += dy_row[j];
    }
  }
}

STAVE_CLONES void add_bias(float* __restrict y, const float* __restrict bias, std::size_t n, std::size_t d) {
  for (std::size_t i = 0; i < n; ++i) {
    float* row = y + i * d;
#pragma omp simd
    for (std::size_t j = 0; j < d; ++j) row[j] += bias[j];
  }
}

STAVE_CLONES void sum_rows(const float* __restrict dy, std::size_t n, std::size_t d, float* __restrict sums) {
  for (std::size_t j = 0; j < d; ++j) sums[j] = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = dy + i * d;
#pragma omp simd
    for (std::size_t j = 0; j < d; ++j) sums[j] += row[j];
  }
}

// 1 + tanh(z) = 2 * sigmoid(2z), so gelu(x) = x * sigmoid(x * (a + b x^2)).
STAVE_CLONES void gelu(const float* __restrict x, std::size_t n, float* __restrict y) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = v / (1.0f + exp_of(-v * (kGeluA + kGeluB * v * v)));
  }
}

STAVE_CLONES void gelu_gradient(const float* __restrict dy, std::size_t n, float* __restrict x) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float sigmoid = 1.0f / (1.0f + exp_of(-v * (kGeluA + kGeluB * v * v)));
    x[i] = dy[i] * (sigmoid + v * sigmoid * (1.0f - sigmoid) * (kGeluA + 3.0f * kGeluB * v * v));
  }
}

STAVE_CLONES void causal_softmax(float* __restrict scores, std::size_t t, std::size_t before, float scale) {
  for (std::size_t i = 0; i < t; ++i) {
    float* row = scores + i * (before + t);
    float largest = row[0];
#pragma omp simd reduction(max : largest)
    for (std::size_t j = 0; j <= before + i; ++j) largest = row[j] > largest ? row[j] : largest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j <= before + i; ++j) {
      const float e = exp_of(scale * (row[j] - largest));
      row[j] = e;
      sum += e;
    }
    const float inverse = 1.0f / sum;
#pragma omp simd
    for (std::size_t j = 0; j <= before + i; ++j) row[j] *= inverse;
    for (std::size_t j = before + i + 1; j < before + t; ++j) row[j] = 0;
  }
}

STAVE_CLONES void causal_softmax_gradient(const float* __restrict p, float* __restrict dp, std::size_t t,
                                          std::size_t before, float scale) {
  for (std::size_t i = 0; i < t; ++i) {
    const float* p_row = p + i * (before + t);
    float* row = dp + i * (before + t);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j <= before + i; ++j) sum += row[j] * p_row[j];
#pragma omp simd
    for (std::size_t j = 0; j <= before + i; ++j) row[j] = scale * p_row[j] * (row[j] - sum);
    for (std::size_t j = before + i + 1; j < before + t; ++j) row[j] = 0;
  }
}

STAVE_CLONES double cross_entropy(float* __restrict logits, const std::uint8_t* __restrict targets, std::size_t n,
                                  std::size_t classes, float scale) {
  double loss = 0;
  for (std::size_t i = 0; i < n; ++i) {
    float* row = logits + i * classes;
    float largest = row[0];
#pragma omp simd reduction(max : largest)
    for (std::size_t j = 0; j < classes; ++j) largest = row[j] > largest ? row[j] : largest;
    const float target_logit = row[targets[i]];
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < classes; ++j) {
      const float e = exp_of(row[j] - largest);
      row[j] = e;
      sum += e;
    }
    loss += std::log(static_cast<double>(sum)) + static_cast<double>(largest) - static_cast<double>(target_logit);
    const float factor = scale / sum;
#pragma omp simd
    for (std::size_t j = 0; j < classes; ++j) row[j] *= factor;
    row[targets[i]] -= scale;
  }
  return loss;
}

STAVE_CLONES void add(float* __restrict a, const float* __restrict b, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) a[i] += b[i];
}

STAVE_CLONES void adam(float* __restrict value, const float* __restrict gradient, float* __restrict first,
                       float* __restrict second, std::size_t n, float learning_rate, std::uint64_t t) {
  constexpr float kFirstDecay = 0.9f;
  constexpr float kSecondDecay = 0.99f;
  const float first_scale = static_cast<float>(1.0 / (1.0 - std::pow(0.9, static_cast<double>(t))));
  const float second_scale = static_cast<float>(1.0 / (1.0 - std::pow(0.99, static_cast<double>(t))));
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    first[i] = kFirstDecay * first[i] + (1.0f - kFirstDecay) * g;
    second[i] = kSecondDecay * second[i] + (1.0f - kSecondDecay) * g * g;
    value[i] -= learning_rate * (first[i] * first_scale) / (std::sqrt(second[i] * second_scale) + 1e-8f);
  }
}

}  // namespace stave
