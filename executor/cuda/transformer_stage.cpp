#include "executor/cuda/transformer_stage.h"

#include <algorithm>
#include <cstddef>

namespace stave {

CudaTransformerStage::Scratch::Scratch(const BlockShape& shape, float* base) {
  const std::size_t value = round_up(shape.tokens() * shape.width, kFloatsPerLine);
  x = base;
  d_in = base == nullptr ? nullptr : base + value;
  block = base == nullptr ? nullptr : base + 2 * value;
  floats = 2 * value + cuda_block_scratch_floats(shape);
}

std::size_t CudaTransformerStage::scratch_floats(const StageLayout& layout, const TokenSpans& spans) {
  std::size_t most = 0;
  for (const TokenSpan& span : spans.different()) most = std::max(most, Scratch(layout.shape(span), nullptr).floats);
  return most;
}

CudaTransformerStage::CudaTransformerStage(const ModelConfig& config, StageLayout layout,
                                           std::shared_ptr<const TokenSpans> spans,
                                           std::shared_ptr<const Corpus> corpus, std::uint32_t versions,
                                           std::vector<FrozenGroups> frozen, const CudaLane& lane,
                                           std::shared_ptr<CudaMatmul> matmul)
    : LanguageStage(config, std::move(layout), std::move(spans), std::move(corpus), std::move(frozen)),
      stream_(lane.stream),
      matmul_(std::move(matmul)),
      gradients_(layout_.floats * sizeof(float)),
      first_moments_(layout_.floats * sizeof(float)),
      second_moments_(layout_.floats * sizeof(float)),
      scratch_(scratch_floats(layout_, *spans_) * sizeof(float)),
      scalars_(sizeof(cuda::AdamScalars)),
      part_loss_(layout_.is_last ? sizeof(double) : 0),
      learning_rate_(sizeof(float)),
      losses_(layout_.is_last ? frozen_.size() * spans_->slices() * sizeof(double) : 0) {
  if (layout_.is_first || layout_.is_last) {
    const std::size_t bytes = frozen_.size() * config_.rows * (config_.sequence + std::size_t{1});
    texts_ = DeviceBytes(bytes);
    host_texts_ = PinnedBytes(bytes);
  }
  for (std::uint32_t v = 0; v < versions; ++v) values_.emplace_back(layout_.floats * sizeof(float));
  const AlignedBytes start(layout_.floats * sizeof(float));
  layout_.fill(config_.seed, start.floats());
  if (layout_.floats != 0)
    check(cudaMemcpy(values_[0].data(), start.data(), start.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  for (const TokenSpan& span : spans_->different()) {
    const std::size_t n = layout_.shape(span).tokens();
    if (std::ranges::find(plans_, n, &Plans::tokens) != plans_.end()) continue;
    plans_.push_back({n, BlockPlans(*matmul_, n, layout_.width), layout_.is_last ? plan_head(n) : LinearPlans{}});
  }
}

// A tied head lies as the embedding does: the products of a linear map from classes to the width, the other way round.
LinearPlans CudaTransformerStage::plan_head(std::size_t tokens) const {
  if (!has_tied_head()) return plan_linear(*matmul_, tokens, layout_.width, kClasses, 0, false);
  const LinearPlans embedding = plan_linear(*matmul_, tokens, kClasses, layout_.width, 0, false);
  return {embedding.input_gradient, embedding.forward, embedding.weight_gradient};
}

const CudaTransformerStage::Plans& CudaTransformerStage::plans(const BlockShape& s) const {
  return *std::ranges::find(plans_, s.tokens(), &Plans::tokens);
}

CudaBlock CudaTransformerStage::block(const BlockShape& s, std::size_t b) const {
  return {s, layout_.blocks[b], plans(s).block, *matmul_, stream_};
}

cuda::Text CudaTransformerStage::text(const Part& part, std::size_t from) const {
  const TokenSpan& span = spans_->at(part.microbatch, part.slice);
  const std::size_t stride = config_.sequence + std::size_t{1};
  const auto* texts = reinterpret_cast<const std::uint8_t*>(texts_.data());
  return {texts + part.microbatch * config_.rows * stride + span.first + from, stride, span.count};
}

void CudaTransformerStage::copy(void* to, const void* from, std::size_t bytes) const {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
}

void CudaTransformerStage::set(void* to, int value, std::size_t bytes) const {
  if (bytes != 0) check(cudaMemsetAsync(to, value, bytes, stream_), "cudaMemsetAsync");
}

void CudaTransformerStage::begin_step(std::uint64_t step) {
  start_over();
  if (losses_.size() != 0) std::memset(losses_.data(), 0, losses_.size());
  const std::size_t length = config_.sequence + std::size_t{1};
  std::byte* to = host_texts_.data();
  for (std::uint32_t m = 0; to != nullptr && m < frozen_.size(); ++m) {
    for (std::uint32_t r = 0; r < config_.rows; ++r, to += length)
      std::memcpy(to, corpus_->window(config_.seed, step, m, r, length).data(), length);
  }
  if (texts_.size() != 0)
    check(cudaMemcpyAsync(texts_.data(), host_texts_.data(), texts_.size(), cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
  const auto rate = static_cast<float>(learning_rate_at(config_, step));
  std::memcpy(learning_rate_.data(), &rate, sizeof rate);
  check(cudaMemcpyAsync(&scalars()->learning_rate, learning_rate_.data(), sizeof rate, cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync");
}

void CudaTransformerStage::warm_up() {
  cuda::advance(scalars(), stream_);
  set(scalars(), 0, scalars_.size());
  cuda::adam(values_[0].floats(), gradients_.floats(), first_moments_.floats(), second_moments_.floats(), 0, scalars(),
             stream_);
  cuda::copy_rows(scratch_.floats(), 1, scratch_.floats(), 1, 0, 1, stream_);
}

void CudaTransformerStage::clear_gradients() { set(gradients_.data(), 0, gradients_.size()); }

// The output is left in the scratch.
void CudaTransformerStage::run_blocks(const Part& part, bool again, const std::byte* input) {
  const BlockShape s = shape(part);
  float* x = scratch_.floats();
  if (part.begins) {
    cuda::embed(x, values(part) + layout_.bytes.offset, values(part) + layout_.positions.offset + s.before * s.width,
                text(part, 0), s.rows, s.width, stream_);
  } else {
    copy(x, input, s.tokens() * s.width * sizeof(float));
  }
  float* kept = reinterpret_cast<float*>(part.stash());
  const std::size_t block_floats = block_stash_floats(s);
  find_earlier(part);
  for (std::size_t b = 0; b < layout_.blocks.size(); ++b) {
    block(s, b).forward(values(part), earlier(), again, x, kept + b * block_floats);
    move_earlier(1);
  }
}

// `loss` on the host gets the sum over the part's tokens; null if nobody wants it.
void CudaTransformerStage::loss_forward(const Part& part, const StageEnds& ends, double* loss) const {
  const BlockShape s = shape(part);
  const std::size_t n = s.tokens();
  const float* weights = values(part);
  const Scratch scratch(s, scratch_.floats());
  cuda::layer_norm(scratch.x, weights + layout_.final_norm.gain.offset, weights + layout_.final_norm.bias.offset, n,
                   s.width, ends.normal, ends.inverse, ends.in, stream_);
  matmul_->run(plans(s).head.forward, ends.in, weights + layout_.head.offset, nullptr, ends.d_logits, stream_);
  const double scale = 1.0 / (static_cast<double>(s.rows) * static_cast<double>(spans_->all_tokens()));
  // A loss is a double: fewer than the four values a token that a block has room for.
  auto* losses = reinterpret_cast<double*>(scratch.block);
  cuda::cross_entropy(ends.d_logits, text(part, 1), n, kClasses, static_cast<float>(scale), losses, stream_);
  if (loss == nullptr) return;
  auto* sum = reinterpret_cast<double*>(part_loss_.data());
  cuda::sum(losses, n, sum, stream_);
  check(cudaMemcpyAsync(loss, sum, sizeof(double), cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
}

void CudaTransformerStage::loss_input_gradient(const Part& part, const StageEnds& ends, bool frozen) const {
  const BlockShape s = shape(part);
  const std::size_t n = s.tokens();
  const std::size_t d = s.width;
  const float* weights = values(part);
  const Scratch scratch(s, scratch_.floats());
  matmul_->run(plans(s).head.input_gradient, ends.d_logits, weights + layout_.head.offset, nullptr, scratch.d_in,
               stream_);
  set(scratch.x, 0, n * d * sizeof(float));
  cuda::layer_norm_input_gradient(scratch.d_in, ends.normal, ends.inverse, weights + layout_.final_norm.gain.offset, n,
                                  d, scratch.x, stream_);
  if (!frozen) cuda::layer_norm_weight_gradient(scratch.d_in, ends.normal, n, d, ends.d_gain, ends.d_bias, stream_);
}

void CudaTransformerStage::forward(const Part& part, const std::byte* input, std::byte* output) {
  const BlockShape s = shape(part);
  const std::size_t bytes = s.tokens() * s.width * sizeof(float);
  float* kept = reinterpret_cast<float*>(part.stash());
  const StageEnds ends(layout_, s, kept);
  if (part.recomputed && !part.begins) copy(ends.input, input, bytes);
  run_blocks(part, false, input);
  if (part.ends)
    loss_forward(part, ends,
                 reinterpret_cast<double*>(losses_.data()) + part.microbatch * spans_->slices() + part.slice);
  if (output != nullptr) copy(output, scratch_.floats(), bytes);
  if (!part.recomputed) return;
  const std::size_t block_floats = block_stash_floats(s);
  for (std::size_t b = 0; b < layout_.blocks.size(); ++b) block(s, b).forget(kept + b * block_floats);
  const float* end = kept + ends.floats;
  if (part.ends) set(ends.normal, 0xFF, static_cast<std::size_t>(end - ends.normal) * sizeof(float));
}

void CudaTransformerStage::recompute(const Part& part) {
  const StageEnds ends(layout_, shape(part), reinterpret_cast<float*>(part.stash()));
  run_blocks(part, true, reinterpret_cast<const std::byte*>(ends.input));
  if (part.ends) loss_forward(part, ends, nullptr);
}

void CudaTransformerStage::input_gradient(const Part& part, const std::byte* gradient, std::byte* output) {
  const BlockShape s = shape(part);
  const std::size_t bytes = s.tokens() * s.width * sizeof(float);
  const FrozenGroups& groups = frozen(part);
  float* kept = reinterpret_cast<float*>(part.stash());
  const StageEnds ends(layout_, s, kept);
  const Scratch scratch(s, scratch_.floats());
  float* g = scratch.x;
  if (part.ends) {
    loss_input_gradient(part, ends, groups.all);
  } else {
    copy(g, gradient, bytes);
  }
  const std::size_t block_floats = block_stash_floats(s);
  find_earlier(part);
  move_earlier(static_cast<std::ptrdiff_t>(layout_.blocks.size()));
  for (std::size_t b = layout_.blocks.size(); b-- > 0;) {
    move_earlier(-1);
    block(s, b).input_gradient(values(part), earlier(), groups.blocks[b], g, kept + b * block_floats, scratch.block);
  }
  if (part.begins) copy(ends.d_embedded, g, bytes);
  if (output != nullptr) copy(output, g, bytes);
}

void CudaTransformerStage::weight_gradient(const Part& part) {
  const BlockShape s = shape(part);
  const std::size_t d = s.width;
  begin_update();
  const FrozenGroups& groups = frozen(part);
  float* kept = reinterpret_cast<float*>(part.stash());
  float* gradients = gradients_.floats();
  const std::size_t block_floats = block_stash_floats(s);
  for (std::size_t b = 0; b < layout_.blocks.size(); ++b)
    block(s, b).weight_gradient(groups.blocks[b], gradients, kept + b * block_floats);
  if (groups.all) return;
  const StageEnds ends(layout_, s, kept);
  if (part.ends) {
    const float* first = has_tied_head() ? ends.d_logits : ends.in;
    const float* second = has_tied_head() ? ends.in : ends.d_logits;
    matmul_->run(plans(s).head.weight_gradient, first, second, nullptr, gradients + layout_.head.offset, stream_);
    cuda::add(gradients + layout_.final_norm.gain.offset, ends.d_gain, d, stream_);
    cuda::add(gradients + layout_.final_norm.bias.offset, ends.d_bias, d, stream_);
  }
  if (part.begins)
    cuda::embed_gradient(gradients + layout_.bytes.offset, gradients + layout_.positions.offset + s.before * d,
                         ends.d_embedded, text(part, 0), s.rows, d, stream_);
}

void CudaTransformerStage::optimizer_step(std::uint32_t from, std::uint32_t to) {
  begin_update();
  if (from != to) copy(values_[to].data(), values_[from].data(), values_[to].size());
  cuda::advance(scalars(), stream_);
  cuda::adam(values_[to].floats(), gradients_.floats(), first_moments_.floats(), second_moments_.floats(),
             layout_.floats, scalars(), stream_);
  note_used();
}

// A copy, so that a captured step finds its versions where they were.
void CudaTransformerStage::settle(std::uint32_t newest) {
  if (newest != 0) copy(values_[0].data(), values_[newest].data(), values_[0].size());
}

std::span<std::byte> CudaTransformerStage::weights(std::uint32_t version) {
  return {values_[version].data(), values_[version].size()};
}

GradientView CudaTransformerStage::gradients() {
  begin_update();
  return {Element::Float32, gradients_.floats(), layout_.floats};
}

void CudaTransformerStage::add_losses(std::vector<double>& sums) const {
  const auto* losses = reinterpret_cast<const double*>(losses_.data());
  for (std::size_t i = 0; i < losses_.size() / sizeof(double); ++i) sums[i] += losses[i];
}

std::vector<ParameterView> CudaTransformerStage::parameters() const {
  return views(values_[0].floats(), gradients_.floats());
}

std::vector<std::span<std::byte>> CudaTransformerStage::state() {
  const auto all = [](DeviceBytes& bytes) { return std::span(bytes.data(), bytes.size()); };
  // Of the scalars only the count lasts.
  return {all(values_[0]), all(first_moments_), all(second_moments_),
          std::span(scalars_.data(), sizeof(cuda::AdamScalars::updates))};
}

}  // namespace stave
