#include "executor/stage/transformer_stage.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "executor/cpu/kernels.h"
#include "executor/cpu/matmul.h"
#include "executor/random.h"

namespace stave {

namespace {

constexpr std::size_t kFloatsPerLine = kAlignment / sizeof(float);
constexpr double kDeviation = 0.02;
// Larger, so that what a byte is outweighs at first what the blocks add to it. Found by trial: 150 steps learn more.
constexpr double kByteDeviation = 0.2;

// The same numbers for a tensor whatever stage it lies on.
void fill(const StageLayout::Named& named, std::uint64_t seed, float* values) {
  RandomStream random(mix(seed, hash_text(named.name)));
  for (std::size_t i = 0; i < named.tensor.count(); ++i) {
    if (named.deviation == 0) {
      values[i] = named.constant;
      continue;
    }
    // Box and Muller.
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    values[i] = static_cast<float>(named.deviation * radius * std::cos(2 * std::numbers::pi * random.uniform()));
  }
}

}  // namespace

StageLayout::StageLayout(const ModelConfig& config, std::size_t first, std::size_t last, std::size_t all_blocks,
                         bool first_stage, bool last_stage)
    : shape{config.rows, config.sequence, config.width, config.heads}, is_first(first_stage), is_last(last_stage) {
  const std::size_t d = config.width;
  const auto take = [&](std::string name, std::size_t rows, std::size_t columns, double deviation, float constant) {
    const Tensor tensor{floats, rows, columns};
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
  if (is_first) {
    bytes = take("embedding.bytes", kClasses, d, kByteDeviation, 0);
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
    head = take("head.weight", d, kClasses, kDeviation, 0);
  }
}

std::size_t StageLayout::parameters() const {
  std::size_t sum = 0;
  for (const Named& named : tensors) sum += named.tensor.count();
  return sum;
}

// What the first and the last stage keep beside the stashes of their blocks.
struct StageEnds {
  float* d_embedded;
  float* normal;
  float* inverse;
  float* in;
  float* d_logits;
  float* d_gain;
  float* d_bias;
  std::size_t floats = 0;

  StageEnds(const StageLayout& layout, float* base) {
    const std::size_t n = layout.shape.tokens();
    const std::size_t d = layout.shape.width;
    floats = layout.blocks.size() * block_stash_floats(layout.shape);
    const auto take = [&](bool present, std::size_t count) -> float* {
      if (!present) return nullptr;
      float* at = base == nullptr ? nullptr : base + floats;
      floats += round_up(count, kFloatsPerLine);
      return at;
    };
    d_embedded = take(layout.is_first, n * d);
    normal = take(layout.is_last, n * d);
    inverse = take(layout.is_last, n);
    in = take(layout.is_last, n * d);
    d_logits = take(layout.is_last, n * kClasses);
    d_gain = take(layout.is_last, d);
    d_bias = take(layout.is_last, d);
  }
};

std::size_t StageLayout::stash_floats() const { return StageEnds(*this, nullptr).floats; }

std::size_t StageLayout::scratch_floats() const {
  // The residual stream, the gradient of the last norm's output, and what a block needs.
  return 2 * round_up(shape.tokens() * shape.width, kFloatsPerLine) + block_scratch_floats(shape);
}

TransformerStage::TransformerStage(const ModelConfig& config, StageLayout layout, std::shared_ptr<const Corpus> corpus,
                                   std::vector<FrozenGroups> frozen)
    : config_(config),
      layout_(std::move(layout)),
      corpus_(std::move(corpus)),
      frozen_(std::move(frozen)),
      values_(layout_.floats * sizeof(float)),
      gradients_(layout_.floats * sizeof(float)),
      first_moments_(layout_.floats * sizeof(float)),
      second_moments_(layout_.floats * sizeof(float)),
      scratch_(layout_.scratch_floats() * sizeof(float)),
      losses_(frozen_.size(), 0) {
  for (const StageLayout::Named& named : layout_.tensors)
    fill(named, config_.seed, values_.floats() + named.tensor.offset);
}

void TransformerStage::begin_step(std::uint64_t step) {
  step_ = step;
  if (layout_.floats != 0) std::memset(gradients_.data(), 0, gradients_.size());
  losses_.assign(losses_.size(), 0);
}

std::span<const std::uint8_t> TransformerStage::row(std::uint32_t microbatch, std::size_t r) const {
  return corpus_->window(config_.seed, step_, microbatch, static_cast<std::uint32_t>(r), config_.sequence + 1u);
}

void TransformerStage::embed(std::uint32_t microbatch, float* x) const {
  const std::size_t d = layout_.shape.width;
  const float* bytes = values_.floats() + layout_.bytes.offset;
  const float* positions = values_.floats() + layout_.positions.offset;
  for (std::size_t r = 0; r < layout_.shape.rows; ++r) {
    const auto text = row(microbatch, r);
    for (std::size_t t = 0; t < layout_.shape.sequence; ++t, x += d) {
      const float* byte = bytes + text[t] * d;
      const float* position = positions + t * d;
      for (std::size_t j = 0; j < d; ++j) x[j] = byte[j] + position[j];
    }
  }
}

void TransformerStage::loss_forward(std::uint32_t microbatch, const float* x, const StageEnds& ends) {
  const std::size_t n = layout_.shape.tokens();
  const std::size_t d = layout_.shape.width;
  const float* values = values_.floats();
  layer_norm(x, values + layout_.final_norm.gain.offset, values + layout_.final_norm.bias.offset, n, d, ends.normal,
             ends.inverse, ends.in);
  const auto classes = static_cast<std::int64_t>(kClasses);
  const auto width = static_cast<std::int64_t>(d);
  matmul(Layout::Plain, Layout::Plain, static_cast<std::int64_t>(n), classes, width, ends.in, width,
         values + layout_.head.offset, classes, 0, ends.d_logits, classes);
  std::vector<std::uint8_t> targets;
  targets.reserve(n);
  for (std::size_t r = 0; r < layout_.shape.rows; ++r) {
    const auto text = row(microbatch, r).subspan(1);
    targets.insert(targets.end(), text.begin(), text.end());
  }
  const double scale = 1.0 / (static_cast<double>(n) * static_cast<double>(losses_.size()));
  losses_[microbatch] =
      cross_entropy(ends.d_logits, targets.data(), n, kClasses, static_cast<float>(scale)) / static_cast<double>(n);
}

void TransformerStage::loss_input_gradient(const StageEnds& ends, bool frozen, float* g) const {
  const std::size_t n = layout_.shape.tokens();
  const std::size_t d = layout_.shape.width;
  const float* values = values_.floats();
  float* d_in = scratch_.floats() + round_up(n * d, kFloatsPerLine);
  const auto classes = static_cast<std::int64_t>(kClasses);
  const auto width = static_cast<std::int64_t>(d);
  matmul(Layout::Plain, Layout::Transposed, static_cast<std::int64_t>(n), width, classes, ends.d_logits, classes,
         values + layout_.head.offset, classes, 0, d_in, width);
  std::memset(g, 0, n * d * sizeof(float));
  layer_norm_input_gradient(d_in, ends.normal, ends.inverse, values + layout_.final_norm.gain.offset, n, d, g);
  if (!frozen) layer_norm_weight_gradient(d_in, ends.normal, n, d, ends.d_gain, ends.d_bias);
}

void TransformerStage::forward(std::uint32_t microbatch, const std::byte* input, std::byte* output, std::byte* stash) {
  const std::size_t bytes = layout_.shape.tokens() * layout_.shape.width * sizeof(float);
  float* kept = reinterpret_cast<float*>(stash);
  float* x = scratch_.floats();
  if (layout_.is_first) {
    embed(microbatch, x);
  } else {
    std::memcpy(x, input, bytes);
  }
  const std::size_t block_floats = block_stash_floats(layout_.shape);
  for (std::size_t b = 0; b < layout_.blocks.size(); ++b)
    block_forward(layout_.shape, layout_.blocks[b], values_.floats(), x, kept + b * block_floats);
  if (layout_.is_last) loss_forward(microbatch, x, StageEnds(layout_, kept));
  if (output != nullptr) std::memcpy(output, x, bytes);
}

void TransformerStage::input_gradient(std::uint32_t microbatch, const std::byte* gradient, std::byte* output,
                                      std::byte* stash) {
  const std::size_t n = layout_.shape.tokens();
  const std::size_t d = layout_.shape.width;
  const std::size_t bytes = n * d * sizeof(float);
  const FrozenGroups& frozen = frozen_[microbatch];
  float* kept = reinterpret_cast<float*>(stash);
  const StageEnds ends(layout_, kept);
  float* g = scratch_.floats();
  float* block_scratch = g + 2 * round_up(n * d, kFloatsPerLine);
  if (layout_.is_last) {
    loss_input_gradient(ends, frozen.all, g);
  } else {
    std::memcpy(g, gradient, bytes);
  }
  const std::size_t block_floats = block_stash_floats(layout_.shape);
  for (std::size_t b = layout_.blocks.size(); b-- > 0;)
    block_input_gradient(layout_.shape, layout_.blocks[b], values_.floats(), frozen.blocks[b], g,
                         kept + b * block_floats, block_scratch);
  if (layout_.is_first) std::memcpy(ends.d_embedded, g, bytes);
  if (output != nullptr) std::memcpy(output, g, bytes);
}

void TransformerStage::weight_gradient(std::uint32_t microbatch, std::byte* stash) {
  const std::size_t n = layout_.shape.tokens();
  const std::size_t d = layout_.shape.width;
  const FrozenGroups& frozen = frozen_[microbatch];
  float* kept = reinterpret_cast<float*>(stash);
  float* gradients = gradients_.floats();
  const std::size_t block_floats = block_stash_floats(layout_.shape);
  for (std::size_t b = 0; b < layout_.blocks.size(); ++b)
    block_weight_gradient(layout_.shape, layout_.blocks[b], frozen.blocks[b], gradients, kept + b * block_floats);
  if (frozen.all) return;
  const StageEnds ends(layout_, kept);
  if (layout_.is_last) {
    const auto classes = static_cast<std::int64_t>(kClasses);
    const auto width = static_cast<std::int64_t>(d);
    matmul(Layout::Transposed, Layout::Plain, width, classes, static_cast<std::int64_t>(n), ends.in, width,
           ends.d_logits, classes, 1, gradients + layout_.head.offset, classes);
    add(gradients + layout_.final_norm.gain.offset, ends.d_gain, d);
    add(gradients + layout_.final_norm.bias.offset, ends.d_bias, d);
  }
  if (layout_.is_first) {
    const float* g = ends.d_embedded;
    for (std::size_t r = 0; r < layout_.shape.rows; ++r) {
      const auto text = row(microbatch, r);
      for (std::size_t t = 0; t < layout_.shape.sequence; ++t, g += d) {
        add(gradients + layout_.bytes.offset + text[t] * d, g, d);
        add(gradients + layout_.positions.offset + t * d, g, d);
      }
    }
  }
}

void TransformerStage::optimizer_step() {
  adam(values_.floats(), gradients_.floats(), first_moments_.floats(), second_moments_.floats(), layout_.floats,
       static_cast<float>(learning_rate_at(config_, step_)), step_ + 1);
}

double TransformerStage::loss() const {
  double sum = 0;
  for (double loss : losses_) sum += loss;
  return sum / static_cast<double>(losses_.size());
}

std::vector<ParameterView> TransformerStage::parameters() const {
  std::vector<ParameterView> result;
  for (const StageLayout::Named& named : layout_.tensors)
    result.push_back({named.name, Element::Float32, values_.floats() + named.tensor.offset,
                      gradients_.floats() + named.tensor.offset, named.tensor.count()});
  return result;
}

}  // namespace stave
