// The language model: a decoder-only transformer over bytes, cut into stages. The first stage holds the embeddings of
// bytes and positions, the last one the final norm, the logits and the loss; with one stage it is both.
#pragma once

#include <memory>

#include "executor/data.h"
#include "executor/stage/block.h"
#include "executor/stage/config.h"
#include "executor/stage/freeze.h"
#include "executor/stage/stage.h"

namespace stave {

class TransformerStage;

class Transformer : public Workload {
 public:
  /// `corpus` must hold at least config.sequence + 1 bytes (Corpus::load checks).
  Transformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus, FreezeRatios freeze = {});
  ~Transformer() override;

  Result<void> configure(std::uint32_t stages, std::uint32_t microbatches) override;
  void create() override;
  Stage* stage(StageId s) override;
  std::size_t payload_bytes(std::string_view payload) const override;
  std::size_t stash_bytes(StageId s) const override;
  std::uint64_t parameter_bytes() const override;
  std::uint64_t tokens_per_step() const override;

  /// Parameters of all stages. Valid after configure().
  std::uint64_t parameters() const;
  /// The ratio really frozen, rounded to parameter groups.
  double frozen_ratio(std::uint32_t stage, std::uint32_t microbatch) const;

 private:
  std::size_t first_block(std::uint32_t stage) const;

  ModelConfig config_;
  std::shared_ptr<const Corpus> corpus_;
  FreezeRatios freeze_;
  std::uint32_t stages_ = 0;
  std::uint32_t microbatches_ = 0;
  std::size_t blocks_ = 0;
  std::vector<std::unique_ptr<TransformerStage>> made_;
};

}  // namespace stave
