#include "executor/stage/language_stage.h"

#include <utility>

namespace stave {

LanguageStage::LanguageStage(const ModelConfig& config, StageLayout layout, std::shared_ptr<const TokenSpans> spans,
                             std::shared_ptr<const Corpus> corpus, std::vector<FrozenGroups> frozen)
    : config_(config),
      layout_(std::move(layout)),
      spans_(std::move(spans)),
      corpus_(std::move(corpus)),
      frozen_(std::move(frozen)) {}

GradientView LanguageStage::tied_gradients() {
  if (layout_.tied.count() == 0) return {};
  return {Element::Float32, static_cast<float*>(gradients().data) + layout_.tied.offset, layout_.tied.count()};
}

void LanguageStage::start_over() {
  clear_gradients();
  used_ = false;
}

void LanguageStage::begin_update() {
  if (used_) start_over();
}

void LanguageStage::find_earlier(const Part& part) {
  earlier_.clear();
  for (std::uint32_t q = 0; q < part.slice; ++q)
    earlier_.push_back({layout_.shape(spans_->at(part.microbatch, q)), reinterpret_cast<float*>(part.stashes[q])});
}

void LanguageStage::move_earlier(std::ptrdiff_t blocks) {
  for (EarlierSlice& each : earlier_)
    each.stash += blocks * static_cast<std::ptrdiff_t>(block_stash_floats(each.shape));
}

std::vector<ParameterView> LanguageStage::views(const float* values, const float* gradients) const {
  std::vector<ParameterView> result;
  for (const StageLayout::Named& named : layout_.tensors)
    result.push_back({named.name, Element::Float32, values + named.tensor.offset, gradients + named.tensor.offset,
                      named.tensor.count()});
  return result;
}

}  // namespace stave
