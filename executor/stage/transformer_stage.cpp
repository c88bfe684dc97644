#include "executor/stage/transformer_stage.h"

#include <cstring>

#include "executor/cpu/kernels.h"
#include "executor/cpu/matmul.h"

namespace stave {

TransformerStage::TransformerStage(const ModelConfig& config, StageLayout layout,
                                   std::shared_ptr<const TokenSpans> spans, std::shared_ptr<const Corpus> corpus,
                                   std::uint32_t versions, std::vector<FrozenGroups> frozen)
    : LanguageStage(config, std::move(layout), std::move(spans), std::move(corpus), std::move(frozen)),
      gradients_(layout_.floats * sizeof(float)),
      first_moments_(layout_.floats * sizeof(float)),
      second_moments_(layout_.floats * sizeof(float)),
      scratch_(layout_.scratch_floats(*spans_) * sizeof(float)),
      losses_(layout_.is_last ? frozen_.size() * spans_->slices() : 0, 0) {
  for (std::uint32_t v = 0; v < versions; ++v) values_.emplace_back(layout_.floats * sizeof(float));
  layout_.fill(config_.seed, values_[0].floats());
}

void TransformerStage::begin_step(std::uint64_t step) {
  step_ = step;
  start_over();
  losses_.assign(losses_.size(), 0);
}

void TransformerStage::clear_gradients() {
  if (layout_.floats != 0) std::memset(gradients_.data(), 0, gradients_.size());
}

// The bytes of a part, and the one after each.
std::span<const std::uint8_t> TransformerStage::row(const Part& part, std::size_t r) const {
  const TokenSpan& mine = span(part);
  return corpus_
      ->window(config_.seed, step_, part.microbatch, static_cast<std::uint32_t>(r), config_.sequence + std::size_t{1})
      .subspan(mine.first, mine.count + std::size_t{1});
}

void TransformerStage::embed(const Part& part, float* x) const {
  const std::size_t d = layout_.width;
  const BlockShape s = shape(part);
  const float* bytes = values(part) + layout_.bytes.offset;
  const float* positions = values(part) + layout_.positions.offset + s.before * d;
  for (std::size_t r = 0; r < s.rows; ++r) {
    const auto text = row(part, r);
    for (std::size_t t = 0; t < s.sequence; ++t, x += d) {
      const float* byte = bytes + text[t] * d;
      const float* position = positions + t * d;
      for (std::size_t j = 0; j < d; ++j) x[j] = byte[j] + position[j];
    }
  }
}

double TransformerStage::loss_forward(const Part& part, const float* x, const StageEnds& ends) const {
  const BlockShape s = shape(part);
  const std::size_t n = s.tokens();
  const std::size_t d = s.width;
  const float* weights = values(part);
  layer_norm(x, weights + layout_.final_norm.gain.offset, weights + layout_.final_norm.bias.offset, n, d, ends.normal,
             ends.inverse, ends.in);
  const auto classes = static_cast<std::int64_t>(kClasses);
  const auto width = static_cast<std::int64_t>(d);
  const bool tied = layout_.tied.count() != 0;
  matmul(Layout::Plain, tied ? Layout::Transposed : Layout::Plain, static_cast<std::int64_t>(n), classes, width, ends.in,
         width, weights + layout_.head.offset, tied ? width : classes, 0, ends.d_logits, classes);
  std::vector<std::uint8_t> targets;
  targets.reserve(n);
  for (std::size_t r = 0; r < s.rows; ++r) {
    const auto text = row(part, r).subspan(1);
    targets.insert(targets.end(), text.begin(), text.end());
  }
  const double scale = 1.0 / (static_cast<double>(s.rows) * static_cast<double>(spans_->all_tokens()));
  return cross_entropy(ends.d_logits, targets.data(), n, kClasses, static_cast<float>(scale));
}

void TransformerStage::loss_input_gradient(const Part& part, const StageEnds& ends, bool frozen, float* g) const {
  const std::size_t n = shape(part).tokens();
  const std::size_t d = layout_.width;
  const float* weights = values(part);
  float* d_in = scratch_.floats() + round_up(n * d, kFloatsPerLine);
  const auto classes = static_cast<std::int64_t>(kClasses);
  const auto width = static_cast<std::int64_t>(d);
  const bool tied = layout_.tied.count() != 0;
  matmul(Layout::Plain, tied ? Layout::Plain : Layout::Transposed, static_cast<std::int64_t>(n), width, classes,
         ends.d_logits, classes, weights + layout_.head.offset, tied ? width : classes, 0, d_in, width);
  std::memset(g, 0, n * d * sizeof(float));
  layer_norm_input_gradient(d_in, ends.normal, ends.inverse, weights + layout_.final_norm.gain.offset, n, d, g);
  if (!frozen) layer_norm_weight_gradient(d_in, ends.normal, n, d, ends.d_gain, ends.d_bias);
}

void TransformerStage::run_blocks(const Part& part, bool again, float* x) {
  const BlockShape s = shape(part);
  float* kept = reinterpret_cast<float*>(part.stash());
  const std::size_t block_floats = block_stash_floats(s);
  find_earlier(part);
  for (const BlockParameters& block : layout_.blocks) {
    block_forward(s, block, values(part), earlier(), again, x, kept);
    kept += block_floats;
    move_earlier(1);
  }
}

void TransformerStage::forward(const Part& part, const std::byte* input, std::byte* output) {
  const BlockShape s = shape(part);
  const std::size_t bytes = s.tokens() * s.width * sizeof(float);
  float* kept = reinterpret_cast<float*>(part.stash());
  const StageEnds ends(layout_, s, kept);
  float* x = scratch_.floats();
  if (part.begins) {
    embed(part, x);
  } else {
    std::memcpy(x, input, bytes);
  }
  if (part.recomputed && !part.begins) std::memcpy(ends.input, x, bytes);
  run_blocks(part, false, x);
  if (part.ends) losses_[part.microbatch * spans_->slices() + part.slice] = loss_forward(part, x, ends);
  if (output != nullptr) std::memcpy(output, x, bytes);
  if (!part.recomputed) return;
  const std::size_t block_floats = block_stash_floats(s);
  for (std::size_t b = 0; b < layout_.blocks.size(); ++b) block_forget(s, kept + b * block_floats);
  const float* end = kept + ends.floats;
  if (part.ends) std::memset(ends.normal, 0xFF, static_cast<std::size_t>(end - ends.normal) * sizeof(float));
}

void TransformerStage::recompute(const Part& part) {
  const BlockShape s = shape(part);
  const StageEnds ends(layout_, s, reinterpret_cast<float*>(part.stash()));
  float* x = scratch_.floats();
  if (part.begins) {
    embed(part, x);
  } else {
    std::memcpy(x, ends.input, s.tokens() * s.width * sizeof(float));
  }
  run_blocks(part, true, x);
  if (part.ends) loss_forward(part, x, ends);
}

void TransformerStage::input_gradient(const Part& part, const std::byte* gradient, std::byte* output) {
  const BlockShape s = shape(part);
  const std::size_t n = s.tokens();
  const std::size_t bytes = n * s.width * sizeof(float);
  const FrozenGroups& groups = frozen(part);
  float* kept = reinterpret_cast<float*>(part.stash());
  const StageEnds ends(layout_, s, kept);
  float* g = scratch_.floats();
  float* block_scratch = g + 2 * round_up(n * s.width, kFloatsPerLine);
  if (part.ends) {
    loss_input_gradient(part, ends, groups.all, g);
  } else {
    std::memcpy(g, gradient, bytes);
  }
  const std::size_t block_floats = block_stash_floats(s);
  find_earlier(part);
  move_earlier(static_cast<std::ptrdiff_t>(layout_.blocks.size()));
  for (std::size_t b = layout_.blocks.size(); b-- > 0;) {
    move_earlier(-1);
    block_input_gradient(s, layout_.blocks[b], values(part), earlier(), groups.blocks[b], g, kept + b * block_floats,
                         block_scratch);
  }
  if (part.begins) std::memcpy(ends.d_embedded, g, bytes);
  if (output != nullptr) std::memcpy(output, g, bytes);
}

void TransformerStage::weight_gradient(const Part& part) {
  const BlockShape s = shape(part);
  const std::size_t n = s.tokens();
  const std::size_t d = s.width;
  begin_update();
  const FrozenGroups& groups = frozen(part);
  float* kept = reinterpret_cast<float*>(part.stash());
  float* gradients = gradients_.floats();
  const std::size_t block_floats = block_stash_floats(s);
  for (std::size_t b = 0; b < layout_.blocks.size(); ++b)
    block_weight_gradient(s, layout_.blocks[b], groups.blocks[b], gradients, kept + b * block_floats);
  if (groups.all) return;
  const StageEnds ends(layout_, s, kept);
  if (part.ends) {
    const auto classes = static_cast<std::int64_t>(kClasses);
    const auto width = static_cast<std::int64_t>(d);
    const auto tokens = static_cast<std::int64_t>(n);
    float* head = gradients + layout_.head.offset;
    if (layout_.tied.count() != 0) {
      matmul(Layout::Transposed, Layout::Plain, classes, width, tokens, ends.d_logits, classes, ends.in, width, 1, head,
             width);
    } else {
      matmul(Layout::Transposed, Layout::Plain, width, classes, tokens, ends.in, width, ends.d_logits, classes, 1, head,
             classes);
    }
    add(gradients + layout_.final_norm.gain.offset, ends.d_gain, d);
    add(gradients + layout_.final_norm.bias.offset, ends.d_bias, d);
  }
  if (part.begins) {
    const float* g = ends.d_embedded;
    for (std::size_t r = 0; r < s.rows; ++r) {
      const auto text = row(part, r);
      for (std::size_t t = 0; t < s.sequence; ++t, g += d) {
        add(gradients + layout_.bytes.offset + text[t] * d, g, d);
        add(gradients + layout_.positions.offset + (s.before + t) * d, g, d);
      }
    }
  }
}

void TransformerStage::optimizer_step(std::uint32_t from, std::uint32_t to) {
  begin_update();
  if (from != to) std::memcpy(values_[to].data(), values_[from].data(), values_[to].size());
  adam(values_[to].floats(), gradients_.floats(), first_moments_.floats(), second_moments_.floats(), layout_.floats,
       static_cast<float>(learning_rate_at(config_, step_)), ++updates_);
  note_used();
}

void TransformerStage::settle(std::uint32_t newest) { std::swap(values_[0], values_[newest]); }

std::span<std::byte> TransformerStage::weights(std::uint32_t version) {
  return {values_[version].data(), values_[version].size()};
}

GradientView TransformerStage::gradients() {
  begin_update();
  return {Element::Float32, gradients_.floats(), layout_.floats};
}

void TransformerStage::add_losses(std::vector<double>& sums) const {
  for (std::size_t i = 0; i < losses_.size(); ++i) sums[i] += losses_[i];
}

std::vector<ParameterView> TransformerStage::parameters() const {
  return views(values_[0].floats(), gradients_.floats());
}

std::vector<std::span<std::byte>> TransformerStage::state() {
  const auto all = [](AlignedBytes& bytes) { return std::span(bytes.data(), bytes.size()); };
  return {all(values_[0]), all(first_moments_), all(second_moments_), std::as_writable_bytes(std::span(&updates_, 1))};
}

}  // namespace stave
