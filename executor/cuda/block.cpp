#include "executor/cuda/block.h"

#include <cmath>

#include "executor/cuda/check.h"
#include "executor/stage/block_stash.h"

namespace stave {

namespace {

constexpr bool has(std::uint8_t frozen, Group group) { return (frozen >> static_cast<unsigned>(group) & 1u) != 0; }

cuda::Factor transposed(cuda::Factor factor) {
  factor.transposed = true;
  return factor;
}

// Queries, keys or values of a slice, or their gradients, of which a row of the batch has `sequence` tokens, `stride`
// apart.
cuda::Factor factor(const BlockShape& s, const float* at, std::size_t stride) {
  return {at, s.sequence * stride, s.head_width(), stride};
}
cuda::Product product(const BlockShape& s, float* at, std::size_t stride, float beta) {
  return {at, s.sequence * stride, s.head_width(), stride, beta};
}

// The columns of the scores from `column` on.
cuda::Factor scores(const BlockShape& s, const float* at, std::size_t column) {
  return {at + column, s.heads * s.sequence * s.context(), s.sequence * s.context(), s.context()};
}
cuda::Product scores(const BlockShape& s, float* at, std::size_t column) {
  return {at + column, s.heads * s.sequence * s.context(), s.sequence * s.context(), s.context(), 0};
}

float scale_of(const BlockShape& s) { return 1.0f / std::sqrt(static_cast<float>(s.head_width())); }

}  // namespace

LinearPlans plan_linear(CudaMatmul& matmul, std::size_t tokens, std::size_t inputs, std::size_t outputs, float beta,
                        bool has_bias) {
  return {matmul.plan({Layout::Plain, Layout::Plain, tokens, outputs, inputs, beta, has_bias}),
          matmul.plan({Layout::Plain, Layout::Transposed, tokens, inputs, outputs, 0, false}),
          matmul.plan({Layout::Transposed, Layout::Plain, inputs, outputs, tokens, 1, false})};
}

BlockPlans::BlockPlans(CudaMatmul& matmul, std::size_t tokens, std::size_t width)
    : attention(plan_linear(matmul, tokens, width, 3 * width, 0, true)),
      projection(plan_linear(matmul, tokens, width, width, 1, true)),
      widen(plan_linear(matmul, tokens, width, 4 * width, 0, true)),
      narrow(plan_linear(matmul, tokens, 4 * width, width, 1, true)) {}

std::size_t cuda_block_scratch_floats(const BlockShape& s) {
  return round_up(s.tokens() * 4 * s.width, kFloatsPerLine) + round_up(s.tokens() * s.width, kFloatsPerLine) +
         round_up(s.rows * s.heads * s.sequence * s.context(), kFloatsPerLine);
}

cuda::ProductShape CudaBlock::products(std::size_t m, std::size_t n, std::size_t k) const {
  const auto narrow = [](std::size_t x) { return static_cast<std::uint32_t>(x); };
  return {narrow(shape.rows), narrow(shape.heads), narrow(m), narrow(n), narrow(k)};
}

void CudaBlock::attention_forward(std::span<const EarlierSlice> earlier, const float* qkv, float* probabilities,
                                  float* context) const {
  const std::size_t t = shape.sequence;
  const std::size_t d = shape.width;
  const std::size_t h = shape.head_width();
  const cuda::Factor q = factor(shape, qkv, 3 * d);
  for (const EarlierSlice& other : earlier) {
    const float* other_qkv = BlockStash(other.shape, other.stash).qkv;
    cuda::batched_product(products(t, other.shape.sequence, h), q, transposed(factor(other.shape, other_qkv + d, 3 * d)),
                          scores(shape, probabilities, other.shape.before), stream);
  }
  cuda::batched_product(products(t, t, h), q, transposed(factor(shape, qkv + d, 3 * d)),
                        scores(shape, probabilities, shape.before), stream);
  cuda::causal_softmax(probabilities, shape.rows * shape.heads, t, shape.before, scale_of(shape), stream);
  const float* p = probabilities;
  cuda::batched_product(products(t, h, t), scores(shape, p, shape.before), factor(shape, qkv + 2 * d, 3 * d),
                        product(shape, context, d, 0), stream);
  for (const EarlierSlice& other : earlier) {
    const float* other_qkv = BlockStash(other.shape, other.stash).qkv;
    cuda::batched_product(products(t, h, other.shape.sequence), scores(shape, p, other.shape.before),
                          factor(other.shape, other_qkv + 2 * d, 3 * d), product(shape, context, d, 1), stream);
  }
}

// qkv becomes its gradient. The gradients of values and keys take their places once those are read no more; what later
// slices have added is copied there first.
void CudaBlock::attention_gradient(std::span<const EarlierSlice> earlier, const float* d_context,
                                   const float* probabilities, float* qkv, const float* d_later, float* dp,
                                   float* dq) const {
  const std::size_t n = shape.tokens();
  const std::size_t t = shape.sequence;
  const std::size_t d = shape.width;
  const std::size_t h = shape.head_width();
  const float beta = shape.has_later ? 1 : 0;
  const cuda::Factor dc = factor(shape, d_context, d);
  float* k = qkv + d;
  float* v = qkv + 2 * d;
  for (const EarlierSlice& other : earlier) {
    const BlockStash at(other.shape, other.stash);
    const std::size_t others = other.shape.sequence;
    cuda::batched_product(products(t, others, h), dc, transposed(factor(other.shape, at.qkv + 2 * d, 3 * d)),
                          scores(shape, dp, other.shape.before), stream);
    cuda::batched_product(products(others, h, t), transposed(scores(shape, probabilities, other.shape.before)), dc,
                          product(other.shape, at.d_later + d, 2 * d, 1), stream);
  }
  cuda::batched_product(products(t, t, h), dc, transposed(factor(shape, v, 3 * d)), scores(shape, dp, shape.before),
                        stream);
  if (shape.has_later) cuda::copy_rows(v, 3 * d, d_later + d, 2 * d, n, d, stream);
  cuda::batched_product(products(t, h, t), transposed(scores(shape, probabilities, shape.before)), dc,
                        product(shape, v, 3 * d, beta), stream);
  cuda::causal_softmax_gradient(probabilities, dp, shape.rows * shape.heads, t, shape.before, scale_of(shape), stream);
  const float* ds = dp;
  cuda::batched_product(products(t, h, t), scores(shape, ds, shape.before), factor(shape, k, 3 * d),
                        product(shape, dq, d, 0), stream);
  if (shape.has_later) cuda::copy_rows(k, 3 * d, d_later, 2 * d, n, d, stream);
  cuda::batched_product(products(t, h, t), transposed(scores(shape, ds, shape.before)), factor(shape, qkv, 3 * d),
                        product(shape, k, 3 * d, beta), stream);
  for (const EarlierSlice& other : earlier) {
    const BlockStash at(other.shape, other.stash);
    const std::size_t others = other.shape.sequence;
    cuda::batched_product(products(t, h, others), scores(shape, ds, other.shape.before),
                          factor(other.shape, at.qkv + d, 3 * d), product(shape, dq, d, 1), stream);
    cuda::batched_product(products(others, h, t), transposed(scores(shape, ds, other.shape.before)),
                          factor(shape, qkv, 3 * d), product(other.shape, at.d_later, 2 * d, 1), stream);
  }
  cuda::copy_rows(qkv, 3 * d, dq, d, n, d, stream);
}

void CudaBlock::forward(const float* values, std::span<const EarlierSlice> earlier, bool again, float* x,
                        float* stash) const {
  const std::size_t n = shape.tokens();
  const std::size_t d = shape.width;
  const BlockParameters& p = parameters;
  const BlockStash at(shape, stash);
  const auto linear = [&](const BlockParameters::Linear& layer, const LinearPlans& plan, const float* from, float* to) {
    matmul.run(plan.forward, from, values + layer.weight.offset, values + layer.bias.offset, to, stream);
  };
  if (shape.has_later && !again)
    check(cudaMemsetAsync(at.d_later, 0, n * 2 * d * sizeof(float), stream), "cudaMemsetAsync");
  cuda::layer_norm(x, values + p.norm1.gain.offset, values + p.norm1.bias.offset, n, d, at.normal1, at.inverse1, at.in1,
                   stream);
  linear(p.attention, plans.attention, at.in1, at.qkv);
  attention_forward(earlier, at.qkv, at.probabilities, at.context);
  linear(p.projection, plans.projection, at.context, x);
  cuda::layer_norm(x, values + p.norm2.gain.offset, values + p.norm2.bias.offset, n, d, at.normal2, at.inverse2, at.in2,
                   stream);
  linear(p.widen, plans.widen, at.in2, at.wide);
  cuda::gelu(at.wide, n * 4 * d, at.gelu, stream);
  linear(p.narrow, plans.narrow, at.gelu, x);
}

void CudaBlock::forget(float* stash) const {
  const BlockStash at(shape, stash);
  // All bits set are not a number, and so is what is computed from it.
  const auto forget = [&](float* from, const float* to) {
    check(cudaMemsetAsync(from, 0xFF, static_cast<std::size_t>(to - from) * sizeof(float), stream), "cudaMemsetAsync");
  };
  forget(stash, at.qkv);
  forget(at.probabilities, shape.has_later ? at.d_later : stash + at.floats);
}

void CudaBlock::input_gradient(const float* values, std::span<const EarlierSlice> earlier, std::uint8_t frozen,
                               float* g, float* stash, float* scratch) const {
  const std::size_t n = shape.tokens();
  const std::size_t d = shape.width;
  const BlockParameters& p = parameters;
  const BlockStash at(shape, stash);
  float* wide = scratch;
  float* narrow = wide + round_up(n * 4 * d, kFloatsPerLine);
  float* dp = narrow + round_up(n * d, kFloatsPerLine);
  const auto linear = [&](const BlockParameters::Linear& layer, const LinearPlans& plan, const float* dy, float* dx) {
    matmul.run(plan.input_gradient, dy, values + layer.weight.offset, nullptr, dx, stream);
  };
  const auto copy_gradient = [&](float* to) {
    check(cudaMemcpyAsync(to, g, n * d * sizeof(float), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  };

  copy_gradient(at.d_out);
  linear(p.narrow, plans.narrow, g, wide);
  cuda::gelu_gradient(wide, n * 4 * d, at.wide, stream);
  linear(p.widen, plans.widen, at.wide, narrow);
  cuda::layer_norm_input_gradient(narrow, at.normal2, at.inverse2, values + p.norm2.gain.offset, n, d, g, stream);
  if (!has(frozen, Group::Narrow)) cuda::sum_rows(at.d_out, n, d, at.d_narrow_bias, stream);
  if (!has(frozen, Group::Widen)) {
    cuda::sum_rows(at.wide, n, 4 * d, at.d_widen_bias, stream);
    cuda::layer_norm_weight_gradient(narrow, at.normal2, n, d, at.d_norm2_gain, at.d_norm2_bias, stream);
  }

  copy_gradient(at.d_middle);
  linear(p.projection, plans.projection, g, narrow);
  attention_gradient(earlier, narrow, at.probabilities, at.qkv, at.d_later, dp, wide);
  linear(p.attention, plans.attention, at.qkv, narrow);
  cuda::layer_norm_input_gradient(narrow, at.normal1, at.inverse1, values + p.norm1.gain.offset, n, d, g, stream);
  if (!has(frozen, Group::Projection)) cuda::sum_rows(at.d_middle, n, d, at.d_projection_bias, stream);
  if (!has(frozen, Group::Attention)) {
    cuda::sum_rows(at.qkv, n, 3 * d, at.d_attention_bias, stream);
    cuda::layer_norm_weight_gradient(narrow, at.normal1, n, d, at.d_norm1_gain, at.d_norm1_bias, stream);
  }
}

void CudaBlock::weight_gradient(std::uint8_t frozen, float* gradients, float* stash) const {
  const BlockParameters& p = parameters;
  const BlockStash at(shape, stash);
  const auto add_sum = [&](const Tensor& t, const float* sum) {
    cuda::add(gradients + t.offset, sum, t.count(), stream);
  };
  const auto add_product = [&](const BlockParameters::Linear& layer, const LinearPlans& plan, const float* x,
                               const float* dy, const float* d_bias) {
    matmul.run(plan.weight_gradient, x, dy, nullptr, gradients + layer.weight.offset, stream);
    add_sum(layer.bias, d_bias);
  };
  if (!has(frozen, Group::Attention)) {
    add_product(p.attention, plans.attention, at.in1, at.qkv, at.d_attention_bias);
    add_sum(p.norm1.gain, at.d_norm1_gain);
    add_sum(p.norm1.bias, at.d_norm1_bias);
  }
  if (!has(frozen, Group::Projection))
    add_product(p.projection, plans.projection, at.context, at.d_middle, at.d_projection_bias);
  if (!has(frozen, Group::Widen)) {
    add_product(p.widen, plans.widen, at.in2, at.wide, at.d_widen_bias);
    add_sum(p.norm2.gain, at.d_norm2_gain);
    add_sum(p.norm2.bias, at.d_norm2_bias);
  }
  if (!has(frozen, Group::Narrow)) add_product(p.narrow, plans.narrow, at.gelu, at.d_out, at.d_narrow_bias);
}

}  // namespace stave
