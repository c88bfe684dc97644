// The element-wise and row-wise kernels of a transformer, in fp32 on one thread, each with its backward.
// Loops are written for GCC's vectorizer and compiled for several processors, one of which is chosen at run time.
// All are deterministic on one machine. Shapes: x[n][d] is n rows of d values, packed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stave {

/// normal = (x - mean) / deviation by row, y = normal * gain + bias. Shapes: x, normal, y [n][d]; inverse[n] = 1 /
/// deviation; gain, bias [d].
void layer_norm(const float* x, const float* gain, const float* bias, std::size_t n, std::size_t d, float* normal,
                float* inverse, float* y);

/// Adds the input gradient of a layer norm to dx[n][d], given that of its output.
void layer_norm_input_gradient(const float* dy, const float* normal, const float* inverse, const float* gain,
                               std::size_t n, std::size_t d, float* dx);

/// dgain[d] = sum over rows of dy * normal, dbias[d] = sum over rows of dy.
void layer_norm_weight_gradient(const float* dy, const float* normal, std::size_t n, std::size_t d, float* dgain,
                                float* dbias);

/// y[n][d] += bias[d] by row.
void add_bias(float* y, const float* bias, std::size_t n, std::size_t d);

/// sums[d] = sum over rows of dy[n][d].
void sum_rows(const float* dy, std::size_t n, std::size_t d, float* sums);

/// y[i] = gelu(x[i]), the tanh form.
void gelu(const float* x, std::size_t n, float* y);

/// x[i] becomes dy[i] * gelu'(x[i]).
void gelu_gradient(const float* dy, std::size_t n, float* x);

/// Rows of scores[t][before + t] become softmax(scale * row), row i over the columns up to before + i; the rest is 0.
void causal_softmax(float* scores, std::size_t t, std::size_t before, float scale);

/// dp[t][before + t], the gradient of the softmax's output p, becomes that of its unscaled scores.
void causal_softmax_gradient(const float* p, float* dp, std::size_t t, std::size_t before, float scale);

/// Cross-entropy of logits[n][classes] against targets[n]: returns the sum of the losses in nats, and turns the logits
/// into their gradient times `scale`.
double cross_entropy(float* logits, const std::uint8_t* targets, std::size_t n, std::size_t classes, float scale);

/// a[i] += b[i].
void add(float* a, const float* b, std::size_t n);

/// Step `t` (from 1) of Adam with decays 0.9 and 0.99. Kingma & Ba, ICLR 2015, arXiv:1412.6980.
void adam(float* value, const float* gradient, float* first, float* second, std::size_t n, float learning_rate,
          std::uint64_t t);

}  // namespace stave
