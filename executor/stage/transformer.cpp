#include "executor/stage/transformer.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "executor/cpu/matmul.h"
#include "executor/stage/cut.h"
#include "executor/stage/transformer_stage.h"

namespace stave {

Transformer::Transformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus, FreezeRatios freeze)
    : config_(config), corpus_(std::move(corpus)), freeze_(std::move(freeze)) {}

Transformer::~Transformer() = default;

StageLayout Transformer::layout(StageId s) const {
  bool keeps_input = false;
  if (!partition_.recomputed.empty()) {
    const auto mine = partition_.recomputed.begin() + static_cast<std::ptrdiff_t>(partition_.triple(s.value, 0, 0));
    const auto end = mine + static_cast<std::ptrdiff_t>(partition_.triples() / partition_.stages);
    keeps_input = std::find(mine, end, 1) != end;
  }
  return StageLayout(config_, first_block_[s.value], first_block_[s.value + 1], first_block_.back(),
                     partition_.begins_some(s), partition_.ends_some(s), keeps_input);
}

Result<void> Transformer::configure(const Partition& partition) {
  if (Result<void> valid = validate(config_); !valid) return valid;
  const std::uint32_t stages = partition.stages;
  const std::vector<std::uint32_t>& layers = partition.sizes.stages;
  const bool listed = layers.size() == stages;
  const std::uint64_t wanted = listed ? std::accumulate(layers.begin(), layers.end(), std::uint64_t{0}) : stages;
  const std::uint64_t blocks = config_.blocks == 0 ? wanted : config_.blocks;
  if (blocks < stages)
    return Failure{"blocks is " + std::to_string(config_.blocks) + ", but the schedule has " + std::to_string(stages) +
                   " stages, and each needs one"};
  if (blocks > kBlocksBounds.most)
    return Failure{"the schedule has " + std::to_string(wanted) + (listed ? " layers in its" : "") +
                   " stages; a model has at most " + std::to_string(kBlocksBounds.most) + " blocks" +
                   (listed && stages <= kBlocksBounds.most ? ", which --blocks deals out by the same ratio" : "")};
  if (corpus_ == nullptr || corpus_->size() < config_.sequence + 1u)
    return Failure{"the text to train on is shorter than a sequence of " + std::to_string(config_.sequence) +
                   " bytes and the one after it"};
  if (!freeze_.fits(stages, partition.microbatches)) return Failure{"the freeze ratios do not fit the schedule"};
  Result<TokenSpans> spans = TokenSpans::make(config_.sequence, partition);
  if (!spans) return spans.failure();
  spans_ = std::make_shared<const TokenSpans>(std::move(*spans));
  if (!(partition == partition_)) made_.clear();
  partition_ = partition;
  first_block_ = {0};
  for (std::uint32_t count : cut_by_ratio(static_cast<std::uint32_t>(blocks), stages, layers))
    first_block_.push_back(first_block_.back() + count);
  return {};
}

void Transformer::make_stages(const Make& make) {
  if (!made_.empty()) return;
  made_.resize(partition_.stages);
  for (std::uint32_t s = 0; s < partition_.stages; ++s) {
    std::vector<FrozenGroups> frozen;
    for (std::uint32_t m = 0; m < partition_.microbatches; ++m)
      frozen.push_back(
          freeze_groups(freeze_.at(s, m, partition_.microbatches), blocks_of(StageId(s))));
    for (DeviceId d : partition_.devices[StageId(s)])
      made_[s].push_back(partition_.is_here(d) ? make(StageId(s), d, frozen) : nullptr);
  }
}

void Transformer::warm_up(StageId s, Stage& stage, std::byte* value, std::span<std::byte* const> stashes) const {
  Part part;
  part.begins = partition_.begins_some(s);
  part.ends = partition_.ends_some(s);
  part.stashes = stashes;
  stage.begin_step(0);
  for (part.slice = 0; part.slice < partition_.slices_of(0); ++part.slice) stage.forward(part, value, nullptr);
  while (part.slice-- > 0) {
    stage.input_gradient(part, value, nullptr);
    stage.weight_gradient(part);
  }
}

void Transformer::create() {
  if (!made_.empty()) return;
  use_one_thread();
  make_stages([&](StageId s, DeviceId, std::vector<FrozenGroups> frozen) {
    return std::make_unique<TransformerStage>(config_, layout(s), spans_, corpus_, partition_.kept_of(s),
                                              std::move(frozen));
  });
  // oneDNN compiles its kernels at their first call, which would count as part of the first op of each kind.
  const AlignedBytes value(payload_bytes("activation"));
  const std::vector<StageId>& route = partition_.route(0);
  std::vector<StageId> warmed;
  for (StageId s : route)
    if (partition_.replicas_here(s) != 0 && (s == route.front() || s == route.back() || warmed.empty()))
      warmed.push_back(s);
  for (StageId s : warmed) {
    const auto made = std::ranges::find_if(made_[s.value], [](const auto& stage) { return stage != nullptr; });
    std::vector<AlignedBytes> memory;
    std::vector<std::byte*> stashes;
    for (std::uint32_t q = 0; q < partition_.slices_of(0); ++q)
      stashes.push_back(memory.emplace_back(stash_bytes(s)).data());
    warm_up(s, **made, value.data(), stashes);
  }
}

std::size_t Transformer::scratch_bytes(const StageLayout& of) const {
  return of.scratch_floats(*spans_) * sizeof(float);
}

Stage* Transformer::stage(StageId s, std::uint32_t replica) {
  return replica < made_[s.value].size() ? made_[s.value][replica].get() : nullptr;
}

// Of each model of those that are trained side by side, the stages where its routes begin and end.
std::vector<std::vector<StageId>> Transformer::tied() const {
  std::map<StageId, StageId> model;
  for (const std::vector<StageId>& route : config_.tied ? partition_.routes : decltype(partition_.routes)()) {
    const StageId first = model.try_emplace(route.front(), route.front()).first->second;
    const StageId last = model.try_emplace(route.back(), route.back()).first->second;
    for (auto& [s, name] : model)
      if (name == last) name = first;
  }
  std::map<StageId, std::vector<StageId>> groups;
  for (const auto& [s, name] : model) groups[name].push_back(s);
  std::vector<std::vector<StageId>> result;
  for (auto& [name, stages] : groups)
    if (stages.size() > 1) result.push_back(std::move(stages));
  return result;
}

std::size_t Transformer::value_bytes(const TokenSpan& span) const {
  return static_cast<std::size_t>(config_.rows) * span.count * config_.width * sizeof(float);
}

std::size_t Transformer::payload_bytes(std::string_view payload, std::uint32_t microbatch,
                                       std::uint32_t slice) const {
  if (payload != "activation" && payload != "gradient") return payload_bytes(payload);
  return value_bytes(spans_->at(microbatch, slice));
}

std::size_t Transformer::payload_bytes(std::string_view payload) const {
  std::size_t most = 0;
  if (payload == "weights")
    for (std::uint32_t s = 0; s < partition_.stages; ++s)
      most = std::max(most, layout(StageId(s)).floats * sizeof(float));
  if (payload != "activation" && payload != "gradient") return most;
  for (const TokenSpan& span : spans_->different()) most = std::max(most, value_bytes(span));
  return most;
}

std::size_t Transformer::stash_bytes(StageId s) const { return layout(s).stash_floats(*spans_) * sizeof(float); }

std::uint64_t Transformer::parameter_bytes() const {
  std::uint64_t sum = 0;
  for (std::uint32_t s = 0; s < partition_.stages; ++s) {
    const StageLayout mine = layout(StageId(s));
    // Versions of the values, gradients and two moments.
    const std::size_t arenas = 3 + std::size_t{partition_.kept_of(StageId(s))};
    const std::size_t one = arenas * mine.floats * sizeof(float) + scratch_bytes(mine);
    sum += one * partition_.replicas_here(StageId(s));
  }
  return sum;
}

std::uint64_t Transformer::tokens_per_step() const { return std::uint64_t{config_.rows} * spans_->all_tokens(); }

double Transformer::loss() const {
  std::vector<double> sums(static_cast<std::size_t>(partition_.microbatches) * partition_.slices, 0);
  for (const auto& replicas : made_)
    for (const std::unique_ptr<LanguageStage>& stage : replicas)
      if (stage != nullptr) stage->add_losses(sums);
  double sum = 0;
  for (double each : sums) sum += each;
  return sum / static_cast<double>(tokens_per_step());
}

std::uint64_t Transformer::parameters() const {
  std::uint64_t sum = 0;
  for (std::uint32_t s = 0; s < partition_.stages; ++s) sum += layout(StageId(s)).parameters();
  for (const std::vector<StageId>& group : tied()) sum -= (group.size() - 1) * kClasses * config_.width;
  return sum;
}

double Transformer::weight_work(StageId s) const {
  const double d = config_.width;
  return kBlockParts * d * d * static_cast<double>(blocks_of(s)) + (partition_.ends_some(s) ? kClasses * d : 0);
}

Transformer::Frozen Transformer::frozen(StageId s, std::uint32_t microbatch) const {
  const double d = config_.width;
  Frozen result;
  result.asked = freeze_.at(s.value, microbatch, partition_.microbatches);
  const FrozenGroups groups = freeze_groups(result.asked, blocks_of(s));
  result.groups = groups.ratio;
  result.work = groups.all ? 1 : groups.ratio * kBlockParts * d * d * static_cast<double>(blocks_of(s)) / weight_work(s);
  return result;
}

}  // namespace stave
