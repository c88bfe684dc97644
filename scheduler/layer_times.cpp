#include "scheduler/layer_times.h"

#include <algorithm>

namespace stave {

namespace {

/// `half`: the two halves of a ring for a sum, or one.
double ring_seconds(const Link* link, double ranks, double bytes, double halves) {
  if (ranks <= 1 || link == nullptr) return 0;
  return halves * ((ranks - 1) / ranks * bytes / link->bytes_per_second + (ranks - 1) * link->latency_seconds);
}

double kept_bytes(const Model& model, const LayerWork& work, double share) {
  const double tensor = model.parallel.tensor;
  return (work.split_bytes / tensor + work.whole_bytes / (model.parallel.sequence ? tensor : 1)) * share;
}

class Times {
 public:
  Times(const Model& model, const Layer& layer, const Tokens& tokens, const Site& site, const Site::Rank& rank)
      : model_(model),
        layer_(layer),
        site_(site),
        on_(*rank.accelerator),
        share_(rank.share),
        work_(work_of(model, layer, tokens)),
        tensor_(model.parallel.tensor),
        local_tokens_(tokens.count * share_),
        bytes_(kPrecisions[model.precision].bytes) {}

  LayerTimes all(const Tokens& tokens) {
    if (layer_.kind == LayerKind::Timed) {
      const double share = tokens.count / microbatch_tokens(model_).count;
      return {layer_.forward_seconds * share, layer_.input_seconds * share, layer_.weight_seconds * share, 0};
    }
    const LocalParameters local = local_parameters(model_, work_);
    const double kept = kept_bytes(model_, work_, share_);
    const double weights = local.all() * model_.weight_bytes;
    LayerTimes result;
    result.forward = compute(work_.weight_flops + work_.core_flops, weights + kept);
    result.input = compute(work_.weight_flops + work_.core_gradient_flops, weights + kept);
    result.weight = compute(work_.weight_flops, local.all() * model_.gradient_bytes + kept);
    if (work_.again_weight_flops + work_.again_core_flops > 0)
      result.again = compute(work_.again_weight_flops + work_.again_core_flops,
                             work_.again_weight_flops > 0 ? weights + kept : 0);
    // Nothing flows back into pixels or words: their gradients are those of weights alone.
    if (layer_.kind == LayerKind::Embedding || layer_.kind == LayerKind::Patches) result.input = 0;
    if (layer_.kind == LayerKind::Embedding) result.forward = looked_up();
    messages(result);
    return result;
  }

 private:
  double compute(double flops, double bytes) const {
    const double mine = flops * share_ / tensor_;
    const double rate = on_.peak[model_.precision] * on_.efficiency_of(mine);
    return std::max(rate > 0 ? mine / rate : 0, bytes / on_.memory_bytes_per_second);
  }

  /// A row for each token is read and written.
  double looked_up() const {
    return 2 * hidden_bytes() / on_.memory_bytes_per_second;
  }

  /// The hidden states of one rank's tokens.
  double hidden_bytes() const { return local_tokens_ * static_cast<double>(model_.hidden) * bytes_; }

  void messages(LayerTimes& into) const {
    const double sum = all_reduce_seconds(site_.tensor, tensor_, hidden_bytes());
    if (layer_.kind == LayerKind::Embedding) into.forward += sum;
    if (layer_.kind == LayerKind::Head) into.input += sum;
    if (layer_.kind != LayerKind::Block) return;
    into.forward += 2 * sum;
    into.input += 2 * sum;
    if (work_.again_weight_flops > 0) into.again += 2 * sum;
    const double keys = 2 * static_cast<double>(layer_.kv_heads * layer_.head_size);
    const double queries = 2 * static_cast<double>(layer_.heads * layer_.head_size);
    const double exchanged = all_to_all_seconds(site_.context, site_.ulysses,
                                                local_tokens_ * (keys + queries) * bytes_ / tensor_) +
                             (site_.ulysses > 1 && site_.context != nullptr
                                  ? 3 * (site_.ulysses - 1) * site_.context->latency_seconds
                                  : 0);
    into.forward += exchanged;
    into.input += exchanged;
    into.forward += ring(local_tokens_ * keys * bytes_ / tensor_, work_.core_flops);
    into.input += ring(2 * local_tokens_ * keys * bytes_ / tensor_, work_.core_gradient_flops);
    if (layer_.experts == 0) return;
    const double sent = local_tokens_ * static_cast<double>(model_.hidden) * static_cast<double>(layer_.active) * bytes_ /
                        (model_.parallel.sequence ? tensor_ : 1);
    const double spread = 2 * all_to_all_seconds(site_.expert, model_.parallel.expert, sent);
    into.forward += spread;
    into.input += spread;
    if (work_.again_weight_flops > 0) into.again += spread;
  }

  /// What passing blocks of keys and values takes beyond the products beside it.
  double ring(double block_bytes, double core_flops) const {
    const double ranks = site_.ring;
    if (ranks <= 1 || site_.context == nullptr) return 0;
    const double step = compute(core_flops, 0) / ranks;
    const double message = site_.context->latency_seconds + block_bytes / site_.context->bytes_per_second;
    return (ranks - 1) * std::max(0.0, message - step);
  }

  const Model& model_;
  const Layer& layer_;
  const Site& site_;
  const Accelerator& on_;
  /// Of the sequence.
  double share_;
  LayerWork work_;
  double tensor_;
  double local_tokens_;
  double bytes_;
};

}  // namespace

double all_reduce_seconds(const Link* link, double ranks, double bytes) { return ring_seconds(link, ranks, bytes, 2); }
double all_gather_seconds(const Link* link, double ranks, double bytes) { return ring_seconds(link, ranks, bytes, 1); }
double all_to_all_seconds(const Link* link, double ranks, double bytes) { return ring_seconds(link, ranks, bytes, 1); }

LocalParameters local_parameters(const Model& model, const LayerWork& work) {
  return {(work.parameters - work.expert_parameters) / model.parallel.tensor,
          work.expert_parameters / (double(model.parallel.tensor) * model.parallel.expert)};
}

double local_activation_bytes(const Model& model, const LayerWork& work, const Site& site) {
  double most = 0;
  for (const Site::Rank& rank : site.ranks) most = std::max(most, rank.share);
  return kept_bytes(model, work, most > 0 ? most : 1.0 / site.context_ranks());
}

LayerTimes layer_times(const Model& model, const Layer& layer, const Tokens& tokens, const Site& site) {
  const auto on = [&](const Site::Rank& rank) { return Times(model, layer, tokens, site, rank).all(tokens); };
  if (site.ranks.empty()) return on({site.accelerator, 1.0 / site.context_ranks()});
  LayerTimes result;
  for (const Site::Rank& rank : site.ranks) {
    const LayerTimes one = on(rank);
    result.forward = std::max(result.forward, one.forward);
    result.input = std::max(result.input, one.input);
    result.weight = std::max(result.weight, one.weight);
    result.again = std::max(result.again, one.again);
  }
  return result;
}

}  // namespace stave
