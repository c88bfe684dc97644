#include "executor/stage/stage_layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "executor/random.h"

namespace stave {

namespace {

constexpr double kDeviation = 0.02;
// Larger, so that what a byte is outweighs at first what the blocks add to it. Found by trial: 150 steps learn more.
constexpr double kByteDeviation = 0.2;
// What makes logits too has to be smaller.
constexpr double kTiedDeviation = 0.05;

}  // namespace

StageLayout::StageLayout(const ModelConfig& config, std::size_t first, std::size_t last, std::size_t all_blocks,
                         bool first_stage, bool last_stage, bool keeps)
    : rows(config.rows),
      width(config.width),
      heads(config.heads),
      is_first(first_stage),
      is_last(last_stage),
      keeps_input(keeps) {
  const std::size_t d = config.width;
  const auto take = [&](std::string name, std::size_t inputs, std::size_t columns, double deviation, float constant) {
    const Tensor tensor{floats, inputs, columns};
    floats += round_up(tensor.count(), kFloatsPerLine);
    tensors.push_back({std::move(name), tensor, deviation, constant});
    return tensor;
  };
  const auto norm = [&](const std::string& name) {
    BlockParameters::Norm result;
    result.gain = take(name + ".gain", 1, d, 0, 1);
    result.bias = take(name + ".bias", 1, d, 0, 0);
    return result;
  };
  const auto linear = [&](const std::string& name, std::size_t inputs, std::size_t outputs, double deviation) {
    BlockParameters::Linear result;
    result.weight = take(name + ".weight", inputs, outputs, deviation, 0);
    result.bias = take(name + ".bias", 1, outputs, 0, 0);
    return result;
  };
  const auto take_bytes = [&] { return take("embedding.bytes", kClasses, d, config.tied ? kTiedDeviation : kByteDeviation, 0); };
  if (is_first) {
    bytes = take_bytes();
    positions = take("embedding.positions", config.sequence, d, kDeviation, 0);
  }
  // What is added to the residual stream starts small, so that its sum over the blocks does not grow with their number.
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(all_blocks));
  for (std::size_t b = first; b < last; ++b) {
    const std::string name = "block" + std::to_string(b);
    BlockParameters p;
    p.norm1 = norm(name + ".norm1");
    p.attention = linear(name + ".attention", d, 3 * d, kDeviation);
    p.projection = linear(name + ".projection", d, d, residual);
    p.norm2 = norm(name + ".norm2");
    p.widen = linear(name + ".widen", d, 4 * d, kDeviation);
    p.narrow = linear(name + ".narrow", 4 * d, d, residual);
    blocks.push_back(p);
  }
  if (is_last) {
    final_norm = norm("final_norm");
    head = !config.tied ? take("head.weight", d, kClasses, kDeviation, 0) : is_first ? bytes : take_bytes();
  }
  if (config.tied && (is_first || is_last)) tied = is_first ? bytes : head;
}

void StageLayout::fill(std::uint64_t seed, float* values) const {
  for (const Named& named : tensors) {
    RandomStream random(mix(seed, hash_text(named.name)));
    float* at = values + named.tensor.offset;
    for (std::size_t i = 0; i < named.tensor.count(); ++i) {
      if (named.deviation == 0) {
        at[i] = named.constant;
        continue;
      }
      // Box and Muller.
      const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
      at[i] = static_cast<float>(named.deviation * radius * std::cos(2 * std::numbers::pi * random.uniform()));
    }
  }
}

std::size_t StageLayout::parameters() const {
  std::size_t sum = 0;
  for (const Named& named : tensors) sum += named.tensor.count();
  return sum;
}

BlockShape StageLayout::shape(const TokenSpan& span) const {
  return {rows, span.count, width, heads, span.first, span.has_later};
}

std::size_t StageLayout::stash_floats(const TokenSpans& spans) const {
  std::size_t most = 0;
  for (const TokenSpan& span : spans.different()) most = std::max(most, StageEnds(*this, shape(span), nullptr).floats);
  return most;
}

std::size_t StageLayout::scratch_floats(const TokenSpans& spans) const {
  // The residual stream, the gradient of the last norm's output, and what a block needs.
  std::size_t most = 0;
  for (const TokenSpan& span : spans.different()) {
    const BlockShape s = shape(span);
    most = std::max(most, 2 * round_up(s.tokens() * s.width, kFloatsPerLine) + block_scratch_floats(s));
  }
  return most;
}

}  // namespace stave
