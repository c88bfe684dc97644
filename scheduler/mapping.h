// Mapping: which place of a cluster each device of a schedule takes, so that the schedule ends soonest.
// What a mapping costs is asked of the caller; it prices the whole schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "scheduler/cluster.h"

namespace stave {

/// The place of each device, counted in groups of as many accelerators as a stage is spread over.
using Mapping = std::vector<std::uint32_t>;

struct MappingProblem {
  const Cluster& cluster;
  std::uint32_t devices = 0;
  /// Accelerators of a place, and copies of the pipeline. Their product times devices is no more than the cluster has.
  std::uint32_t width = 1;
  std::uint32_t copies = 1;
  /// What the schedule takes; none if it cannot run so, for want of memory or of a path.
  std::function<std::optional<double>(const Mapping&)> makespan;
  /// Most mappings whose makespan is asked for, at least one.
  std::size_t most_tries = 1000;
};

struct MappingResult {
  /// The first of the shortest; none if no mapping that was tried can be.
  std::optional<Mapping> best;
  double makespan = 0;
  /// Of places 0, 1, 2, ...; none if that cannot be.
  std::optional<double> in_order;
  std::size_t tried = 0;
  /// All that can differ were tried: nothing is shorter.
  bool exact = false;
};

/// Places of one node are alike, and so are nodes with the same devices and links while none of theirs is taken; but not
/// accelerators that a link of their own joins, nor places across nodes. Mappings that differ by alike places are one: with
/// the first places of a node, or, where fewer than all of a node share a link, with devices on as many such as there are.
///
/// If there are no more than `most_tries`, all are tried. Otherwise a local search: from places in order, from the nodes
/// with the fastest devices first and from those with the slowest first, it moves one device to a free place or swaps two
/// as long as that helps.
///
/// Cost: the makespans asked for, and O(devices * kinds of nodes) for each.
MappingResult find_mapping(const MappingProblem& problem);

}  // namespace stave
