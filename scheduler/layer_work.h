// The work of one layer: its parameters, its operations, and the bytes it keeps, each by a formula with its source.
// What that takes on an accelerator is layer_times.h; how layers make stages is model_prices.h.
#pragma once

#include "scheduler/model.h"

namespace stave {

/// The tokens of one op: of a microbatch, or of one slice of it.
struct Tokens {
  /// Of all its sequences.
  double count = 0;
  /// Sum over them of the tokens that attention looks at.
  double seen = 0;
  double sequences = 1;
  /// Of each sequence, the tokens before these.
  double before = 0;
};

/// A microbatch as the model has it.
Tokens microbatch_tokens(const Model& model);

/// `sequences` sequences of which each has `length` tokens here, behind `before` of the same sequence. A token sees all
/// of these and of those before, or, if the model is causal, half of these on average (Narayanan et al., arXiv:2104.04473,
/// count all; that a causal kernel does half of it is in Dao, arXiv:2307.08691, section 3.1).
Tokens tokens_of(const Model& model, double sequences, double length, double before);

/// Nothing of it is split over ranks. Bytes in the precision of the model.
struct LayerWork {
  double parameters = 0;
  /// Of them those of routed experts, which are split over the expert ranks.
  double expert_parameters = 0;
  /// Operations of a forward: products with weights, and attention's own.
  double weight_flops = 0;
  double core_flops = 0;
  /// Attention's own in the gradient of the input.
  double core_gradient_flops = 0;
  /// Kept from the forward to the backward, as the model recomputes: what tensor ranks split, and what they split along
  /// the sequence only.
  double split_bytes = 0;
  double whole_bytes = 0;
  double activation_bytes = 0;
  /// Recomputed before the gradient of the input, as the model says.
  double again_weight_flops = 0;
  double again_core_flops = 0;
};

/// Parameters, operations and bytes of one layer for these tokens (by default a microbatch).
///
/// Operations: a product of n x k with k x m takes 2nkm (Narayanan et al., arXiv:2104.04473, appendix). The gradients of
/// input and weight take as much as the forward each, and attention's own twice that, all of it in the input's (Qi et al.,
/// arXiv:2401.10241, table 1: 24h + 4s, 24h + 8s, 24h); 2.5 times where its scores are made again (Dao,
/// arXiv:2307.08691, section 3.2: five products for two).
///
/// Bytes: what Korthikanti et al. (arXiv:2205.05198, section 4.1) count: 34h + 5as a token in 16 bits with a inner size of
/// 4h, dropout and stored scores; other layers by the same rule, the inputs of each product, norm, softmax and
/// non-linear function and the masks of dropout. Gated: the two inputs of the gate and the one of the last product.
LayerWork work_of(const Model& model, const Layer& layer, const Tokens& tokens);
inline LayerWork work_of(const Model& model, const Layer& layer) {
  return work_of(model, layer, microbatch_tokens(model));
}

/// Of all layers; a table that is tied counts once.
double parameters_of(const Model& model);
/// Of a forward of a microbatch through all layers.
double forward_flops(const Model& model);

}  // namespace stave
