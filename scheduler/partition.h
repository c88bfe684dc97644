// Partition: how many layers each stage of a schedule should have, so that the schedule ends soonest.
// What a split costs is asked of the caller; it prices the whole schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace stave {

using Split = std::vector<std::uint32_t>;

struct PartitionProblem {
  /// Layers to share out, and stages; each stage gets one at least.
  std::uint32_t layers = 0;
  std::uint32_t stages = 0;
  /// load[s][i]: what layer i takes on stage s. `first_load` and `last_load` come on top of the first and last stage.
  std::vector<std::vector<double>> load;
  double first_load = 0;
  double last_load = 0;
  /// What the schedule takes with a split; none if it cannot be, memory for one.
  std::function<std::optional<double>(const Split&)> makespan;
  /// Most splits whose makespan is asked for.
  std::size_t most_tries = 1000;
};

struct PricedSplit {
  Split layers;
  /// None if the schedule cannot run so.
  std::optional<double> makespan;
  /// The greatest load of a stage.
  double slowest = 0;
};

struct PartitionResult {
  /// The best found; none if no split that was tried can be.
  std::optional<PricedSplit> best;
  /// As many on each stage; the first ones have one more if they do not divide.
  PricedSplit uniform;
  /// The split whose slowest stage takes least, and of those one with even loads.
  PricedSplit least_slowest;
  std::size_t tried = 0;
};

/// Shorter is the makespan, not the slowest stage: it is about the way of the first microbatch down the stages, and M times
/// the slowest, so light ends help. Starts from the uniform split and from those of the dynamic program, with lighter and
/// lighter ends, and moves single layers between two stages, with those between them moving along, while that helps.
///
/// Cost: O(stages * layers^2) for each start, and the makespans asked for. `layers` must be at least `stages`.
PartitionResult partition(const PartitionProblem& problem);

}  // namespace stave
