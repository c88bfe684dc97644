// LanguageStage: a stage of the language model, wherever it computes: what it is made of, what of it a part is about, and
// what its parts lost. The arithmetic and the memory that it needs are for transformer_stage.h, here and in executor/cuda/.
#pragma once

#include <memory>
#include <vector>

#include "executor/data.h"
#include "executor/stage/freeze.h"
#include "executor/stage/stage.h"
#include "executor/stage/stage_layout.h"
#include "executor/stage/token_spans.h"

namespace stave {

class LanguageStage : public Stage {
 public:
  /// Adds the loss of every part that ended here to sums[microbatch * slices + slice]. Once the step has ended.
  virtual void add_losses(std::vector<double>& sums) const = 0;

  GradientView tied_gradients() override;

 protected:
  /// Shape: frozen[m] for every microbatch.
  LanguageStage(const ModelConfig& config, StageLayout layout, std::shared_ptr<const TokenSpans> spans,
                std::shared_ptr<const Corpus> corpus, std::vector<FrozenGroups> frozen);

  virtual void clear_gradients() = 0;
  /// Gradients that an update has used are not used again: begin_update() comes before any are added or used, and
  /// clears those; note_used() after the update; start_over() clears them all the same.
  void begin_update();
  void note_used() { used_ = true; }
  void start_over();

  /// The parameters and their gradients, where they lie in arenas of the layout, the device's or the host's.
  std::vector<ParameterView> views(const float* values, const float* gradients) const;

  const TokenSpan& span(const Part& part) const { return spans_->at(part.microbatch, part.slice); }
  BlockShape shape(const Part& part) const { return layout_.shape(span(part)); }
  const FrozenGroups& frozen(const Part& part) const { return frozen_[part.microbatch]; }
  /// The slices before a part, as its first block sees them; and as the next block does, or the one before.
  void find_earlier(const Part& part);
  void move_earlier(std::ptrdiff_t blocks);
  const std::vector<EarlierSlice>& earlier() const { return earlier_; }

  const ModelConfig config_;
  const StageLayout layout_;
  const std::shared_ptr<const TokenSpans> spans_;
  const std::shared_ptr<const Corpus> corpus_;
  const std::vector<FrozenGroups> frozen_;

 private:
  std::vector<EarlierSlice> earlier_;
  bool used_ = false;
};

}  // namespace stave
