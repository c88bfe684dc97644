// The language model: a decoder-only transformer over bytes, cut into stages. The first stage holds the embeddings of
// bytes and positions, the last one the final norm, the logits and the loss; with one stage it is both. First is where
// some route begins, last where some route ends: by routes that never meet, models are trained side by side.
// Here its stages compute on the CPU; executor/cuda/transformer.h makes those of a GPU.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/data.h"
#include "executor/stage/block.h"
#include "executor/stage/config.h"
#include "executor/stage/freeze.h"
#include "executor/stage/stage.h"
#include "executor/stage/token_spans.h"

namespace stave {

class LanguageStage;
struct StageLayout;

class Transformer : public Workload {
 public:
  /// `corpus` must hold at least config.sequence + 1 bytes (Corpus::load checks).
  Transformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus, FreezeRatios freeze = {});
  ~Transformer() override;

  Result<void> configure(const Partition& partition) override;
  void create() override;
  Stage* stage(StageId s, std::uint32_t replica = 0) override;
  std::vector<std::vector<StageId>> tied() const override;
  std::size_t payload_bytes(std::string_view payload, std::uint32_t microbatch, std::uint32_t slice) const override;
  std::size_t payload_bytes(std::string_view payload) const override;
  std::size_t stash_bytes(StageId s) const override;
  std::uint64_t parameter_bytes() const override;
  std::uint64_t tokens_per_step() const override;
  double loss() const override;

  /// Parameters of all stages, replicas and copies of tied ones not counted. Valid after configure().
  std::uint64_t parameters() const;
  /// Multiply-adds of a token in a stage's W when nothing is frozen.
  double weight_work(StageId s) const;
  /// What a microbatch freezes at a stage, as shares: as the schedule asks for it; really, of the blocks' weights, rounded
  /// to groups; and of weight_work().
  struct Frozen {
    double asked = 0;
    double groups = 0;
    double work = 0;
  };
  Frozen frozen(StageId s, std::uint32_t microbatch) const;

 protected:
  using Make = std::function<std::unique_ptr<LanguageStage>(StageId, DeviceId, std::vector<FrozenGroups>)>;
  /// Makes every stage that is here, unless that is done.
  void make_stages(const Make& make);
  /// The first microbatch of step 0 forwards and backwards through a stage, and all that the stage ever does in a pass.
  /// `value`, of the greatest size, is input and gradient; there must be a stash for each of its slices.
  void warm_up(StageId s, Stage& stage, std::byte* value, std::span<std::byte* const> stashes) const;
  StageLayout layout(StageId s) const;
  /// Of a stage, for the longest part.
  virtual std::size_t scratch_bytes(const StageLayout& layout) const;

  const ModelConfig config_;
  const std::shared_ptr<const Corpus> corpus_;
  Partition partition_;
  std::shared_ptr<const TokenSpans> spans_;

 private:
  std::size_t value_bytes(const TokenSpan& span) const;
  std::size_t blocks_of(StageId s) const { return first_block_[s.value + 1] - first_block_[s.value]; }

  FreezeRatios freeze_;
  // Shape: stages + 1; the last is the number of blocks.
  std::vector<std::size_t> first_block_ = {0};
  // By stage and replica.
  std::vector<std::vector<std::unique_ptr<LanguageStage>>> made_;
};

}  // namespace stave
