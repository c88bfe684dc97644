// BlockStash: where what a block keeps of a slice lies, the same on a CPU and on a GPU.
#pragma once

#include <cstddef>

#include "executor/aligned.h"
#include "executor/stage/block.h"

namespace stave {

inline constexpr std::size_t kFloatsPerLine = kAlignment / sizeof(float);

/// Where things lie in a block's stash. Gradients take the place of what their computation used up: that of qkv replaces
/// qkv, that of the widened values before gelu replaces those.
struct BlockStash {
  float* normal1 = nullptr;
  float* inverse1 = nullptr;
  float* in1 = nullptr;
  float* qkv = nullptr;
  float* probabilities = nullptr;
  float* context = nullptr;
  float* normal2 = nullptr;
  float* inverse2 = nullptr;
  float* in2 = nullptr;
  float* wide = nullptr;
  float* gelu = nullptr;
  float* d_middle = nullptr;
  float* d_out = nullptr;
  // Sums of this microbatch, in the order of the parameters.
  float* d_norm1_gain = nullptr;
  float* d_norm1_bias = nullptr;
  float* d_attention_bias = nullptr;
  float* d_projection_bias = nullptr;
  float* d_norm2_gain = nullptr;
  float* d_norm2_bias = nullptr;
  float* d_widen_bias = nullptr;
  float* d_narrow_bias = nullptr;
  // What later slices have added to the gradients of keys and values: 2 d a token, keys first.
  float* d_later = nullptr;
  std::size_t floats = 0;

  BlockStash(const BlockShape& s, float* base) {
    const std::size_t n = s.tokens();
    const std::size_t d = s.width;
    const auto take = [&](std::size_t count) {
      float* at = base == nullptr ? nullptr : base + floats;
      floats += round_up(count, kFloatsPerLine);
      return at;
    };
    normal1 = take(n * d);
    inverse1 = take(n);
    in1 = take(n * d);
    qkv = take(n * 3 * d);
    probabilities = take(s.rows * s.heads * s.sequence * s.context());
    context = take(n * d);
    normal2 = take(n * d);
    inverse2 = take(n);
    in2 = take(n * d);
    wide = take(n * 4 * d);
    gelu = take(n * 4 * d);
    d_middle = take(n * d);
    d_out = take(n * d);
    d_norm1_gain = take(d);
    d_norm1_bias = take(d);
    d_attention_bias = take(3 * d);
    d_projection_bias = take(d);
    d_norm2_gain = take(d);
    d_norm2_bias = take(d);
    d_widen_bias = take(4 * d);
    d_narrow_bias = take(d);
    d_later = take(s.has_later ? n * 2 * d : 0);
  }
};

}  // namespace stave
