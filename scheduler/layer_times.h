// The time of one layer's ops on an accelerator: products, memory, and the messages between the ranks of one stage.
#pragma once

#include <vector>

#include "scheduler/cluster.h"
#include "scheduler/layer_work.h"
#include "scheduler/model.h"

namespace stave {

/// Where the ranks of one stage sit: an accelerator, and the slowest link of each of its groups. Null where a group is of
/// one rank, or has no path.
struct Site {
  /// The slowest of its ranks.
  const Accelerator* accelerator = nullptr;
  const Link* tensor = nullptr;
  const Link* context = nullptr;
  const Link* expert = nullptr;
  /// Context ranks that are unlike, and the share of a sequence that each takes; empty where they are alike and all take
  /// as much.
  struct Rank {
    const Accelerator* accelerator = nullptr;
    double share = 0;
    friend bool operator==(const Rank&, const Rank&) = default;
  };
  std::vector<Rank> ranks;
  /// Context ranks that share a sequence.
  std::uint32_t ulysses = 1;
  std::uint32_t ring = 1;
  std::uint32_t context_ranks() const { return ulysses * ring; }

  friend bool operator==(const Site&, const Site&) = default;
};

/// Seconds of one layer. `again` is what recomputation repeats before the gradient of the input; it is part of neither.
struct LayerTimes {
  double forward = 0;
  double input = 0;
  double weight = 0;
  double again = 0;
};

/// Parameters that one rank holds: without those of routed experts, and those.
struct LocalParameters {
  double dense = 0;
  double experts = 0;
  double all() const { return dense + experts; }
};

/// Collectives of `ranks` over one link, each rank with `bytes` of data. Rings: 2(n - 1)/n of the data for a sum that
/// all get, half of that to gather or to scatter, and n - 1 steps for each half (Patarasuk and Yuan, JPDC 2009; Thakur
/// et al., IJHPCA 2005); all-to-all: (n - 1)/n, in n - 1 steps.
double all_reduce_seconds(const Link* link, double ranks, double bytes);
double all_gather_seconds(const Link* link, double ranks, double bytes);
double all_to_all_seconds(const Link* link, double ranks, double bytes);

/// Tensor ranks split weights and the products with them (Shoeybi et al., arXiv:1909.08053, section 3), expert ranks the
/// routed experts, context ranks nothing of either.
LocalParameters local_parameters(const Model& model, const LayerWork& work);
/// Bytes kept from F on, on the rank that keeps most.
double local_activation_bytes(const Model& model, const LayerWork& work, const Site& site);

/// The longer of the operations at the rate that products of this size reach, and the bytes of weights and activations
/// read or written once at the memory's bandwidth (the rule of the Calculon simulator: Isaev et al., SC 2023); and then
/// what the ranks send each other:
///
/// * tensor: two sums over the ranks in F and two in I, of the hidden states (Shoeybi et al., section 3; with `sequence` a
///   gather and a scatter in the place of each, of the same volume: Korthikanti et al., arXiv:2205.05198, section 4.2.2);
///   one at an embedding and one at a head;
/// * ulysses: four all-to-alls in F and in I, of queries, keys, values and outputs (Jacobs et al., arXiv:2309.14509);
/// * ring: keys and values pass r - 1 times beside attention's products, and with their gradients in I; what is longer
///   than those products is added (Liu et al., arXiv:2310.01889, section 3);
/// * expert: two all-to-alls in F and in I, of the hidden states to the experts that tokens take and back
///   (Lepikhin et al., arXiv:2006.16668, section 3.2).
///
/// Where context ranks are unlike an op takes what the slowest takes for its share.
LayerTimes layer_times(const Model& model, const Layer& layer, const Tokens& tokens, const Site& site);

}  // namespace stave
