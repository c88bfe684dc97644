// Cluster: the machine that a schedule is priced on: accelerators, the nodes they sit in, and the links between them.
// Read from TOML; docs/machines.md is its reference. What a model's ops take on it is model_prices.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

/// Number formats, with the bytes of one number.
struct PrecisionInfo {
  std::string_view name;
  double bytes;
};
inline constexpr std::array<PrecisionInfo, 8> kPrecisions = {
    {{"fp64", 8}, {"fp32", 4}, {"tf32", 4}, {"bf16", 2}, {"fp16", 2}, {"fp8", 1}, {"int8", 1}, {"fp4", 0.5}}};

/// Most accelerators of a cluster.
inline constexpr std::uint32_t kMaxAccelerators = 1u << 20;

/// A kind of accelerator.
struct Accelerator {
  std::string name;
  /// Operations a second, by kPrecisions; 0 where it has none.
  std::array<double, kPrecisions.size()> peak = {};
  double memory_bytes = 0;
  double memory_bytes_per_second = 0;
  /// What share of the peak products of so many operations reach: rising operations; at least one.
  std::vector<std::pair<double, double>> efficiency = {{0, 1}};
  /// Added to every op of a schedule.
  double launch_seconds = 0;
  /// How many times longer computing takes while a message moves.
  double slowdown = 1;
  Span memory_span;

  /// Of a product of so many operations: between two points it lies on the line between them over the logarithm.
  double efficiency_of(double flops) const;
};

/// A kind of link.
struct Link {
  std::string name;
  double latency_seconds = 0;
  /// Of one link, in one direction.
  double bytes_per_second = 0;
  /// How many neighbouring accelerators of a node share one.
  std::uint32_t shared_by = 1;
  /// Each direction has the whole bandwidth; otherwise both share it.
  bool both_ways = true;
};

struct Node {
  std::string name;
  std::string region;
  /// The first node of its name, and the first of its region, by number.
  std::uint32_t group = 0;
  std::uint32_t area = 0;
  /// Its accelerators are numbered first .. first + count - 1.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t accelerator = 0;
  /// Indices into Cluster::links: between its accelerators, and to other nodes; kNone without.
  std::uint32_t inside = UINT32_MAX;
  std::uint32_t network = UINT32_MAX;
};

struct Cluster {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::string name;
  std::vector<Accelerator> accelerators;
  std::vector<Link> links;
  std::vector<Node> nodes;
  std::uint32_t size = 0;
  /// The place of the first node in the file, for errors that speak of all of them.
  Span span;

  std::uint32_t node_of(std::uint32_t accelerator) const;
  const Accelerator& kind_of(std::uint32_t accelerator) const {
    return accelerators[nodes[node_of(accelerator)].accelerator];
  }
  bool all_alike() const;
  /// The link that a message between two different accelerators takes, an index into `links`; kNone if there is no path.
  /// By pair before node before region before network. Cost: O(log (nodes * links by pair)).
  std::uint32_t link(std::uint32_t a, std::uint32_t b) const;
  /// "accelerator 5 (h100, node `left`, copy 2 of 4)".
  std::string place(std::uint32_t accelerator) const;

  /// A link between two by their numbers, a <= b. Sorted by these, and no two join the same.
  struct Pair {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::uint32_t link = 0;
  };
  std::vector<Pair> by_accelerators;
  /// By Node::group and by Node::area: all nodes of a name, all of a region.
  std::vector<Pair> by_nodes;
  std::vector<Pair> by_regions;
};

/// Errors: none, with diagnostics: no TOML; a key that no table has, or one that is needed; a quantity without its unit,
/// below 0, 0 where there must be some, or absurd; a link to an accelerator, node, region or link that is not there, or two
/// that join the same; no node, or too many accelerators.
std::optional<Cluster> read_cluster(const Sources& sources, SourceId source, Diagnostics& sink);

}  // namespace stave
