// ModelConfig: the size of the language model and how it is trained, with the bounds a command line checks.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"

namespace stave {

/// The closed range of a whole-number setting.
struct Bounds {
  std::string_view name;
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

inline constexpr Bounds kWidthBounds = {"width", 4, 4096};
inline constexpr Bounds kHeadsBounds = {"heads", 1, 64};
/// 0 blocks stands for as many as the schedule lists layers, or one a stage.
inline constexpr Bounds kBlocksBounds = {"blocks", 0, 1024};
inline constexpr Bounds kSequenceBounds = {"sequence", 2, 4096};
inline constexpr Bounds kRowsBounds = {"rows", 1, 1024};
inline constexpr Bounds kStepsBounds = {"steps", 1, 1000000};
/// Of the learning rate: above 0, at most this.
inline constexpr double kMostLearningRate = 10;

struct ModelConfig {
  std::uint32_t width = 96;
  std::uint32_t heads = 4;
  std::uint32_t blocks = 0;
  /// Tokens of a row.
  std::uint32_t sequence = 64;
  /// Rows of a microbatch.
  std::uint32_t rows = 2;
  /// The logits are made with the embedding of bytes, in place of a matrix of their own.
  bool tied = false;
  std::uint32_t steps = 150;
  /// For the schedule of the learning rate: it rises over the first `warmup` steps (0: a tenth of `decay`), then falls,
  /// at step `decay` (0: the last) to a tenth, where it stays.
  std::uint32_t warmup = 0;
  std::uint32_t decay = 0;
  double learning_rate = 0.003;
  std::uint64_t seed = 1;
};

/// Errors: a setting outside its bounds, heads that do not divide the width; named with its value.
Result<void> validate(const ModelConfig& config);

/// Rate of a step, counted from 0.
double learning_rate_at(const ModelConfig& config, std::uint64_t step);

}  // namespace stave
