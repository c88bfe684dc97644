#include "executor/stage/block.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "executor/aligned.h"
#include "executor/cpu/kernels.h"
#include "executor/cpu/matmul.h"
#include "executor/stage/block_stash.h"

namespace stave {

namespace {

constexpr bool has(std::uint8_t frozen, Group group) { return (frozen >> static_cast<unsigned>(group) & 1u) != 0; }

// y = beta * y + x W + bias, x[n][inputs].
void linear(const BlockParameters::Linear& p, const float* values, const float* x, std::size_t n, float beta,
            float* y) {
  const auto inputs = static_cast<std::int64_t>(p.weight.rows);
  const auto outputs = static_cast<std::int64_t>(p.weight.columns);
  matmul(Layout::Plain, Layout::Plain, static_cast<std::int64_t>(n), outputs, inputs, x, inputs,
         values + p.weight.offset, outputs, beta, y, outputs);
  add_bias(y, values + p.bias.offset, n, p.weight.columns);
}

// dx = dy W^T.
void linear_input_gradient(const Tensor& w, const float* values, const float* dy, std::size_t n, float* dx) {
  const auto inputs = static_cast<std::int64_t>(w.rows);
  const auto outputs = static_cast<std::int64_t>(w.columns);
  matmul(Layout::Plain, Layout::Transposed, static_cast<std::int64_t>(n), inputs, outputs, dy, outputs,
         values + w.offset, outputs, 0, dx, inputs);
}

// dW += x^T dy.
void linear_weight_gradient(const Tensor& w, const float* x, const float* dy, std::size_t n, float* gradients) {
  const auto inputs = static_cast<std::int64_t>(w.rows);
  const auto outputs = static_cast<std::int64_t>(w.columns);
  matmul(Layout::Transposed, Layout::Plain, inputs, outputs, static_cast<std::int64_t>(n), x, inputs, dy, outputs, 1,
         gradients + w.offset, outputs);
}

// Keys and values of some slice that those computed attend to, with the gradients that they add to.
struct Keys {
  // Of the first row's first head; a token further is 3 d further, values d after keys.
  float* qkv;
  // The same for their gradients, a token 2 d further.
  float* d_later;
  std::size_t sequence;
  // Column of the scores that its first token has.
  std::size_t column;
};

std::vector<Keys> keys_of(std::span<const EarlierSlice> earlier) {
  std::vector<Keys> result;
  for (const EarlierSlice& each : earlier) {
    const BlockStash at(each.shape, each.stash);
    result.push_back({at.qkv, at.d_later, each.shape.sequence, each.shape.before});
  }
  return result;
}

void attention_forward(const BlockShape& s, std::span<const EarlierSlice> earlier, const float* qkv,
                       float* probabilities, float* context) {
  const auto t = static_cast<std::int64_t>(s.sequence);
  const auto all = static_cast<std::int64_t>(s.context());
  const auto d = static_cast<std::int64_t>(s.width);
  const auto h = static_cast<std::int64_t>(s.head_width());
  const float scale = 1.0f / std::sqrt(static_cast<float>(h));
  const std::vector<Keys> others = keys_of(earlier);
  for (std::size_t row = 0; row < s.rows; ++row) {
    for (std::size_t head = 0; head < s.heads; ++head) {
      const float* q = qkv + row * s.sequence * 3 * s.width + head * s.head_width();
      const float* k = q + s.width;
      const float* v = k + s.width;
      float* p = probabilities + (row * s.heads + head) * s.sequence * s.context();
      float* own = p + s.before;
      float* c = context + row * s.sequence * s.width + head * s.head_width();
      const auto other_key = [&](const Keys& other) {
        return other.qkv + row * other.sequence * 3 * s.width + head * s.head_width() + s.width;
      };
      for (const Keys& other : others)
        matmul(Layout::Plain, Layout::Transposed, t, static_cast<std::int64_t>(other.sequence), h, q, 3 * d,
               other_key(other), 3 * d, 0, p + other.column, all);
      matmul(Layout::Plain, Layout::Transposed, t, t, h, q, 3 * d, k, 3 * d, 0, own, all);
      causal_softmax(p, s.sequence, s.before, scale);
      matmul(Layout::Plain, Layout::Plain, t, h, t, own, all, v, 3 * d, 0, c, d);
      for (const Keys& other : others)
        matmul(Layout::Plain, Layout::Plain, t, h, static_cast<std::int64_t>(other.sequence), p + other.column, all,
               other_key(other) + s.width, 3 * d, 1, c, d);
    }
  }
}

// Copies what later slices have added for a row and head, keys or values, to where the slice's own gradient is added.
void take_later(const BlockShape& s, const float* d_later, float* to) {
  for (std::size_t i = 0; i < s.sequence; ++i)
    std::memcpy(to + i * 3 * s.width, d_later + i * 2 * s.width, s.head_width() * sizeof(float));
}

// qkv becomes its gradient. Scratch: sequence * (context + head width) floats.
void attention_gradient(const BlockShape& s, std::span<const EarlierSlice> earlier, const float* d_context,
                        const float* probabilities, float* qkv, const float* d_later, float* scratch) {
  const auto t = static_cast<std::int64_t>(s.sequence);
  const auto all = static_cast<std::int64_t>(s.context());
  const auto d = static_cast<std::int64_t>(s.width);
  const auto h = static_cast<std::int64_t>(s.head_width());
  const float scale = 1.0f / std::sqrt(static_cast<float>(h));
  const float beta = s.has_later ? 1 : 0;
  const std::vector<Keys> others = keys_of(earlier);
  float* dp = scratch;
  float* own = dp + s.before;
  float* dq = scratch + round_up(s.sequence * s.context(), kFloatsPerLine);
  for (std::size_t row = 0; row < s.rows; ++row) {
    for (std::size_t head = 0; head < s.heads; ++head) {
      float* q = qkv + row * s.sequence * 3 * s.width + head * s.head_width();
      float* k = q + s.width;
      float* v = k + s.width;
      const float* p = probabilities + (row * s.heads + head) * s.sequence * s.context();
      const float* dc = d_context + row * s.sequence * s.width + head * s.head_width();
      const float* later = s.has_later ? d_later + row * s.sequence * 2 * s.width + head * s.head_width() : nullptr;
      const auto other_key = [&](const Keys& other) {
        return other.qkv + row * other.sequence * 3 * s.width + head * s.head_width() + s.width;
      };
      const auto other_gradient = [&](const Keys& other) {
        return other.d_later + row * other.sequence * 2 * s.width + head * s.head_width();
      };
      for (const Keys& other : others) {
        const auto n = static_cast<std::int64_t>(other.sequence);
        matmul(Layout::Plain, Layout::Transposed, t, n, h, dc, d, other_key(other) + s.width, 3 * d, 0,
               dp + other.column, all);
        matmul(Layout::Transposed, Layout::Plain, n, h, t, p + other.column, all, dc, d, 1,
               other_gradient(other) + s.width, 2 * d);
      }
      matmul(Layout::Plain, Layout::Transposed, t, t, h, dc, d, v, 3 * d, 0, own, all);
      if (s.has_later) take_later(s, later + s.width, v);
      matmul(Layout::Transposed, Layout::Plain, t, h, t, p + s.before, all, dc, d, beta, v, 3 * d);
      causal_softmax_gradient(p, dp, s.sequence, s.before, scale);
      matmul(Layout::Plain, Layout::Plain, t, h, t, own, all, k, 3 * d, 0, dq, h);
      if (s.has_later) take_later(s, later, k);
      matmul(Layout::Transposed, Layout::Plain, t, h, t, own, all, q, 3 * d, beta, k, 3 * d);
      for (const Keys& other : others) {
        const auto n = static_cast<std::int64_t>(other.sequence);
        matmul(Layout::Plain, Layout::Plain, t, h, n, dp + other.column, all, other_key(other), 3 * d, 1, dq, h);
        matmul(Layout::Transposed, Layout::Plain, n, h, t, dp + other.column, all, q, 3 * d, 1, other_gradient(other),
               2 * d);
      }
      for (std::size_t i = 0; i < s.sequence; ++i)
        std::memcpy(q + i * 3 * s.width, dq + i * s.head_width(), s.head_width() * sizeof(float));
    }
  }
}

}  // namespace

std::size_t block_stash_floats(const BlockShape& shape) { return BlockStash(shape, nullptr).floats; }

std::size_t block_scratch_floats(const BlockShape& s) {
  const std::size_t attention = round_up(s.sequence * s.context(), kFloatsPerLine) + s.sequence * s.head_width();
  return round_up(s.tokens() * 5 * s.width, kFloatsPerLine) + round_up(attention, kFloatsPerLine);
}

void block_forward(const BlockShape& shape, const BlockParameters& p, const float* values,
                   std::span<const EarlierSlice> earlier, bool again, float* x, float* stash) {
  const std::size_t n = shape.tokens();
  const std::size_t d = shape.width;
  const BlockStash at(shape, stash);
  if (shape.has_later && !again) std::memset(at.d_later, 0, n * 2 * d * sizeof(float));
  layer_norm(x, values + p.norm1.gain.offset, values + p.norm1.bias.offset, n, d, at.normal1, at.inverse1, at.in1);
  linear(p.attention, values, at.in1, n, 0, at.qkv);
  attention_forward(shape, earlier, at.qkv, at.probabilities, at.context);
  linear(p.projection, values, at.context, n, 1, x);
  layer_norm(x, values + p.norm2.gain.offset, values + p.norm2.bias.offset, n, d, at.normal2, at.inverse2, at.in2);
  linear(p.widen, values, at.in2, n, 0, at.wide);
  gelu(at.wide, n * 4 * d, at.gelu);
  linear(p.narrow, values, at.gelu, n, 1, x);
}

void block_forget(const BlockShape& shape, float* stash) {
  const BlockStash at(shape, stash);
  const std::size_t d = shape.width;
  float* end = stash + at.floats;
  // All bits set are not a number, and so is what is computed from it.
  const auto forget = [](float* from, const float* to) {
    std::memset(from, 0xFF, static_cast<std::size_t>(to - from) * sizeof(float));
  };
  if (!shape.has_later) {
    forget(stash, end);
    return;
  }
  forget(stash, at.qkv);
  for (std::size_t i = 0; i < shape.tokens(); ++i) forget(at.qkv + i * 3 * d, at.qkv + i * 3 * d + d);
  forget(at.probabilities, at.d_later);
}

void block_input_gradient(const BlockShape& shape, const BlockParameters& p, const float* values,
                          std::span<const EarlierSlice> earlier, std::uint8_t frozen, float* g, float* stash,
                          float* scratch) {
  const std::size_t n = shape.tokens();
  const std::size_t d = shape.width;
  const BlockStash at(shape, stash);
  float* wide = scratch;
  float* narrow = scratch + n * 4 * d;
  float* attention = scratch + round_up(n * 5 * d, kFloatsPerLine);

  std::memcpy(at.d_out, g, n * d * sizeof(float));
  linear_input_gradient(p.narrow.weight, values, g, n, wide);
  gelu_gradient(wide, n * 4 * d, at.wide);
  linear_input_gradient(p.widen.weight, values, at.wide, n, narrow);
  layer_norm_input_gradient(narrow, at.normal2, at.inverse2, values + p.norm2.gain.offset, n, d, g);
  if (!has(frozen, Group::Narrow)) sum_rows(at.d_out, n, d, at.d_narrow_bias);
  if (!has(frozen, Group::Widen)) {
    sum_rows(at.wide, n, 4 * d, at.d_widen_bias);
    layer_norm_weight_gradient(narrow, at.normal2, n, d, at.d_norm2_gain, at.d_norm2_bias);
  }

  std::memcpy(at.d_middle, g, n * d * sizeof(float));
  linear_input_gradient(p.projection.weight, values, g, n, narrow);
  attention_gradient(shape, earlier, narrow, at.probabilities, at.qkv, at.d_later, attention);
  linear_input_gradient(p.attention.weight, values, at.qkv, n, narrow);
  layer_norm_input_gradient(narrow, at.normal1, at.inverse1, values + p.norm1.gain.offset, n, d, g);
  if (!has(frozen, Group::Projection)) sum_rows(at.d_middle, n, d, at.d_projection_bias);
  if (!has(frozen, Group::Attention)) {
    sum_rows(at.qkv, n, 3 * d, at.d_attention_bias);
    layer_norm_weight_gradient(narrow, at.normal1, n, d, at.d_norm1_gain, at.d_norm1_bias);
  }
}

void block_weight_gradient(const BlockShape& shape, const BlockParameters& p, std::uint8_t frozen, float* gradients,
                           const float* stash) {
  const std::size_t n = shape.tokens();
  const BlockStash at(shape, const_cast<float*>(stash));
  const auto add_sum = [&](const Tensor& t, const float* sum) { add(gradients + t.offset, sum, t.count()); };
  if (!has(frozen, Group::Attention)) {
    linear_weight_gradient(p.attention.weight, at.in1, at.qkv, n, gradients);
    add_sum(p.attention.bias, at.d_attention_bias);
    add_sum(p.norm1.gain, at.d_norm1_gain);
    add_sum(p.norm1.bias, at.d_norm1_bias);
  }
  if (!has(frozen, Group::Projection)) {
    linear_weight_gradient(p.projection.weight, at.context, at.d_middle, n, gradients);
    add_sum(p.projection.bias, at.d_projection_bias);
  }
  if (!has(frozen, Group::Widen)) {
    linear_weight_gradient(p.widen.weight, at.in2, at.wide, n, gradients);
    add_sum(p.widen.bias, at.d_widen_bias);
    add_sum(p.norm2.gain, at.d_norm2_gain);
    add_sum(p.norm2.bias, at.d_norm2_bias);
  }
  if (!has(frozen, Group::Narrow)) {
    linear_weight_gradient(p.narrow.weight, at.gelu, at.d_out, n, gradients);
    add_sum(p.narrow.bias, at.d_narrow_bias);
  }
}

}  // namespace stave
