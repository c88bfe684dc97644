// StageLayout and StageEnds: which parameters a stage of the language model has and where they lie in its arena, and
// where things lie in a stash. The same on a CPU and on a GPU, which compute what they will.
#pragma once

#include <string>
#include <vector>

#include "executor/stage/block.h"
#include "executor/stage/block_stash.h"
#include "executor/stage/config.h"
#include "executor/stage/token_spans.h"

namespace stave {

/// Values of a byte.
inline constexpr std::size_t kClasses = 256;

/// Which parameters a stage has and where they lie in its arena.
struct StageLayout {
  struct Named {
    std::string name;
    Tensor tensor;
    /// Standard deviation at the start; 0 for a constant.
    double deviation = 0;
    float constant = 0;
  };

  std::size_t rows = 0;
  std::size_t width = 0;
  std::size_t heads = 0;
  /// Some route begins at the stage, or ends there.
  bool is_first = false;
  bool is_last = false;
  /// Some part of it keeps its input, to be recomputed.
  bool keeps_input = false;
  std::vector<BlockParameters> blocks;
  Tensor bytes;
  Tensor positions;
  BlockParameters::Norm final_norm;
  /// Shape: width x kClasses; of a tied model, where it is the embedding of bytes once more, kClasses x width.
  Tensor head;
  /// Of a tied model, `bytes` or `head`, which are one where a stage is first and last; else nothing.
  Tensor tied;
  std::vector<Named> tensors;
  /// Length of the arena, each tensor beginning on a cache line.
  std::size_t floats = 0;

  /// Blocks `first` .. `last` - 1 of a model with `all_blocks`.
  StageLayout(const ModelConfig& config, std::size_t first, std::size_t last, std::size_t all_blocks, bool is_first,
              bool is_last, bool keeps_input);
  std::size_t parameters() const;
  BlockShape shape(const TokenSpan& span) const;
  /// Writes the values of the start into values[floats]. The same numbers for a tensor whatever stage it lies on.
  void fill(std::uint64_t seed, float* values) const;
  /// Of the greatest of the spans.
  std::size_t stash_floats(const TokenSpans& spans) const;
  std::size_t scratch_floats(const TokenSpans& spans) const;
};

/// What a stage keeps of a part beside the stashes of its blocks.
struct StageEnds {
  float* input = nullptr;
  float* d_embedded = nullptr;
  float* normal = nullptr;
  float* inverse = nullptr;
  float* in = nullptr;
  float* d_logits = nullptr;
  float* d_gain = nullptr;
  float* d_bias = nullptr;
  std::size_t floats = 0;

  StageEnds(const StageLayout& layout, const BlockShape& shape, float* base) {
    const std::size_t n = shape.tokens();
    const std::size_t d = layout.width;
    floats = layout.blocks.size() * block_stash_floats(shape);
    const auto take = [&](bool present, std::size_t count) -> float* {
      if (!present) return nullptr;
      float* at = base == nullptr ? nullptr : base + floats;
      floats += round_up(count, kFloatsPerLine);
      return at;
    };
    input = take(layout.keeps_input, n * d);
    d_embedded = take(layout.is_first, n * d);
    normal = take(layout.is_last, n * d);
    inverse = take(layout.is_last, n);
    in = take(layout.is_last, n * d);
    d_logits = take(layout.is_last, n * kClasses);
    d_gain = take(layout.is_last, d);
    d_bias = take(layout.is_last, d);
  }
};

}  // namespace stave
