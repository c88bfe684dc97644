#include "scheduler/layer_work.h"

#include <algorithm>

#include "scheduler/cluster.h"

namespace stave {

namespace {

/// Bytes of a softmax's sum and maximum, and of logits: 32 bits.
constexpr double kFloat32 = 4;

/// What a window leaves of `tokens.seen`: a token sees no more than that many. A causal one behind p others sees p, until
/// p has the size of the window.
double seen_in(double window, bool causal, const Tokens& tokens) {
  if (!causal) return std::min(tokens.seen, tokens.count * window);
  const double end = tokens.before + tokens.count / tokens.sequences;
  const double full = std::clamp(window, tokens.before, end);
  return tokens.sequences * ((full * full - tokens.before * tokens.before) / 2 + window * (end - full));
}

class Block {
 public:
  Block(const Model& model, const Layer& layer, const Tokens& tokens)
      : layer_(layer),
        tokens_(tokens),
        h_(static_cast<double>(model.hidden)),
        heads_(static_cast<double>(layer.heads)),
        kv_(static_cast<double>(layer.kv_heads)),
        key_(static_cast<double>(layer.head_size)),
        value_(static_cast<double>(layer.value_size)),
        bytes_(kPrecisions[model.precision].bytes) {
    seen_ = layer.window > 0 ? seen_in(static_cast<double>(layer.window), model.causal, tokens) : tokens.seen;
  }

  LayerWork all(Recomputation recomputation) {
    if (layer_.norm) norms();
    if (layer_.kv_latent > 0)
      latent_attention();
    else
      attention();
    core();
    if (layer_.experts > 0)
      experts();
    else
      mlp(static_cast<double>(layer_.ffn));
    work_.weight_flops = 2 * products_ * tokens_.count;
    recompute(recomputation);
    work_.activation_bytes = work_.split_bytes + work_.whole_bytes;
    return work_;
  }

 private:
  void keep_split(double a_token) { work_.split_bytes += a_token * tokens_.count; }
  void keep_whole(double a_token) { work_.whole_bytes += a_token * tokens_.count; }
  /// A product of a token with a matrix.
  void product(double in, double out) {
    work_.parameters += in * out;
    products_ += in * out;
  }
  void bias(double size) {
    if (layer_.bias) work_.parameters += size;
  }

  /// Before attention and before the products behind it: each keeps its input.
  void norms() {
    work_.parameters += 2 * h_ * (layer_.norm_bias ? 2 : 1);
    keep_whole(2 * bytes_ * h_);
  }

  /// Multi-head or grouped-query attention (Ainslie et al., arXiv:2305.13245).
  void attention() {
    product(h_, heads_ * key_);
    product(h_, 2 * kv_ * key_);
    product(heads_ * value_, h_);
    bias(heads_ * key_ + 2 * kv_ * key_ + h_);
    keep_whole(bytes_ * h_);
    keep_split(bytes_ * (heads_ * key_ + 2 * kv_ * key_));
  }

  /// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix C), with a norm on each latent.
  void latent_attention() {
    const double query = static_cast<double>(layer_.query_latent);
    const double latent = static_cast<double>(layer_.kv_latent);
    const double rope = static_cast<double>(layer_.rope_size);
    const double nope = static_cast<double>(layer_.nope_size);
    if (query > 0) {
      product(h_, query);
      work_.parameters += query;
      product(query, heads_ * key_);
      keep_whole(2 * bytes_ * query);
    } else {
      product(h_, heads_ * key_);
    }
    product(h_, latent + rope);
    work_.parameters += latent;
    product(latent, heads_ * (nope + value_));
    product(heads_ * value_, h_);
    keep_whole(bytes_ * (h_ + 2 * latent + rope));
    keep_split(bytes_ * heads_ * (2 * key_ + value_));
  }

  /// Scores, softmax, and the sum of values; then the input of the last product and its dropout.
  void core() {
    work_.core_flops = 2 * heads_ * (key_ + value_) * seen_;
    work_.core_gradient_flops = (layer_.flash ? 2.5 : 2) * work_.core_flops;
    if (layer_.flash) {
      keep_split(kFloat32 * heads_);
    } else {
      core_bytes_ = heads_ * seen_ * (layer_.dropout ? 2 * bytes_ + 1 : bytes_);
      work_.split_bytes += core_bytes_;
    }
    keep_split(bytes_ * heads_ * value_);
    if (layer_.dropout) keep_whole(1 * h_);
  }

  /// Shazeer, arXiv:2002.05202, for the gated one.
  void mlp(double inner) {
    product(h_, (layer_.gated ? 2 : 1) * inner);
    product(inner, h_);
    bias((layer_.gated ? 2 : 1) * inner + h_);
    keep_whole(bytes_ * h_);
    keep_split(bytes_ * (layer_.gated ? 3 : 2) * inner);
    if (layer_.dropout) keep_whole(1 * h_);
  }

  /// A router, experts of which a token takes some, and shared ones (DeepSeekMoE, arXiv:2401.06066).
  void experts() {
    const double n = static_cast<double>(layer_.experts);
    const double active = static_cast<double>(layer_.active);
    const double inner = static_cast<double>(layer_.expert_ffn);
    const double shared = static_cast<double>(layer_.shared);
    const double one = (layer_.gated ? 3 : 2) * h_ * inner;
    product(h_, n);
    if (layer_.router_bias) work_.parameters += n;
    work_.expert_parameters = n * one;
    work_.parameters += (n + shared) * one;
    products_ += (active + shared) * one;
    keep_whole(bytes_ * h_ + kFloat32 * n);
    // Each expert a token takes has a copy of its input.
    keep_split((active + shared) * bytes_ * (h_ + (layer_.gated ? 3 : 2) * inner));
  }

  /// Korthikanti et al., section 5: selectively, only attention's scores are made again; fully, all but the input.
  void recompute(Recomputation recomputation) {
    if (recomputation == Recomputation::Selective) {
      work_.split_bytes -= core_bytes_;
      if (core_bytes_ > 0) work_.again_core_flops = work_.core_flops;
    } else if (recomputation == Recomputation::Full) {
      work_.split_bytes = 0;
      work_.whole_bytes = bytes_ * h_ * tokens_.count;
      work_.again_weight_flops = work_.weight_flops;
      work_.again_core_flops = work_.core_flops;
    }
  }

  const Layer& layer_;
  const Tokens& tokens_;
  double h_;
  double heads_;
  double kv_;
  double key_;
  double value_;
  double bytes_;
  double seen_ = 0;
  /// Multiplications of a token with weights.
  double products_ = 0;
  /// Of the scores.
  double core_bytes_ = 0;
  LayerWork work_;
};

double norm_parameters(const Model& model, const Layer& layer) {
  return layer.norm ? static_cast<double>(model.hidden) * (layer.norm_bias ? 2 : 1) : 0;
}

/// A table of rows that are looked up: no product.
LayerWork embedding(const Model& model, const Layer& layer, const Tokens& tokens) {
  const double h = static_cast<double>(model.hidden);
  LayerWork work;
  work.parameters = static_cast<double>(layer.vocabulary + layer.positions) * h;
  // Its dropout's mask (Korthikanti et al., section 4.3).
  if (layer.dropout) work.whole_bytes = h * tokens.count;
  work.activation_bytes = work.whole_bytes;
  return work;
}

/// Squares of pixels, each through one product (Dosovitskiy et al., arXiv:2010.11929).
LayerWork patches(const Model& model, const Layer& layer, const Tokens& tokens) {
  const double h = static_cast<double>(model.hidden);
  const double pixels = static_cast<double>(layer.patch) * static_cast<double>(layer.patch) *
                        static_cast<double>(layer.channels);
  LayerWork work;
  work.parameters = pixels * h + (layer.bias ? h : 0) + (layer.class_token ? h : 0) +
                    static_cast<double>(layer.positions) * h;
  work.weight_flops = 2 * pixels * h * (tokens.count - (layer.class_token ? tokens.sequences : 0));
  work.whole_bytes = kPrecisions[model.precision].bytes * pixels * tokens.count;
  work.activation_bytes = work.whole_bytes;
  return work;
}

/// The last norm, and logits in 32 bits (Korthikanti et al., section 4.3: 4sbh(1 + v/h) without embedding). A class is
/// read off one token a sequence.
LayerWork head(const Model& model, const Layer& layer, const Tokens& tokens) {
  const double h = static_cast<double>(model.hidden);
  const double v = static_cast<double>(layer.vocabulary);
  const double bytes = kPrecisions[model.precision].bytes;
  const double read = layer.class_token ? tokens.sequences : tokens.count;
  LayerWork work;
  work.parameters = v * h + (layer.bias ? v : 0) + norm_parameters(model, layer);
  work.weight_flops = 2 * v * h * read;
  work.whole_bytes = (layer.norm ? bytes * h * tokens.count : 0) + bytes * h * read;
  work.split_bytes = kFloat32 * v * read;
  work.activation_bytes = work.whole_bytes + work.split_bytes;
  return work;
}

LayerWork timed(const Model& model, const Layer& layer, const Tokens& tokens) {
  LayerWork work;
  work.parameters = model.weight_bytes > 0 ? layer.weight_bytes / model.weight_bytes : 0;
  const double whole = microbatch_tokens(model).count;
  work.split_bytes = layer.activation_bytes * (whole > 0 ? tokens.count / whole : 1);
  work.activation_bytes = work.split_bytes;
  return work;
}

}  // namespace

Tokens microbatch_tokens(const Model& model) {
  return tokens_of(model, static_cast<double>(model.microbatch), static_cast<double>(model.sequence), 0);
}

Tokens tokens_of(const Model& model, double sequences, double length, double before) {
  return {sequences * length, sequences * length * (before + (model.causal ? length / 2 : length)), sequences, before};
}

LayerWork work_of(const Model& model, const Layer& layer, const Tokens& tokens) {
  switch (layer.kind) {
    case LayerKind::Embedding: return embedding(model, layer, tokens);
    case LayerKind::Patches: return patches(model, layer, tokens);
    case LayerKind::Block: return Block(model, layer, tokens).all(model.recomputation);
    case LayerKind::Head: return head(model, layer, tokens);
    case LayerKind::Timed: return timed(model, layer, tokens);
  }
  return {};
}

double parameters_of(const Model& model) {
  double result = 0;
  for (const Layer& layer : model.layers) {
    result += work_of(model, layer).parameters;
    if (layer.kind == LayerKind::Head && layer.tied)
      result -= static_cast<double>(layer.vocabulary) * static_cast<double>(model.hidden);
  }
  return result;
}

double forward_flops(const Model& model) {
  double result = 0;
  for (const Layer& layer : model.layers) {
    const LayerWork work = work_of(model, layer);
    result += work.weight_flops + work.core_flops;
  }
  return result;
}

}  // namespace stave
