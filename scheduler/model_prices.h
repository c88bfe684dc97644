// ModelPrices: what the ops and messages of a schedule take when it trains a model on a cluster, and what they hold.
// Times are in microseconds, rounded to whole nanoseconds; sizes in bytes of one accelerator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/prices.h"
#include "core/ids.h"
#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/cluster.h"
#include "scheduler/layer_times.h"
#include "scheduler/memory.h"
#include "scheduler/model.h"
#include "scheduler/stage_layers.h"

namespace stave {

class ModelPrices : public Prices {
 public:
  /// `map[d]` is the place of the schedule's device d, counted in groups of as many accelerators as the model spreads a
  /// stage over; empty: in order. `blocks`, if given, is how many layers each stage has (see ranges_of).
  ModelPrices(std::shared_ptr<const Model> model, std::shared_ptr<const Cluster> cluster, std::vector<std::uint32_t> map,
              std::vector<std::uint32_t> blocks = {})
      : model_(std::move(model)), cluster_(std::move(cluster)), map_(std::move(map)), blocks_(std::move(blocks)) {}

  /// F, I, W and their sums; R, what F takes, where the schedule has it (then I repeats nothing); G the sum of a stage's
  /// gradients over its replicas and copies; O the optimizer, by the memory it reads and writes. Other ops keep a cost of
  /// 0, and have none otherwise. A message takes the link's latency and its bytes over the bandwidth; its bytes are
  /// those of its microbatch and slice. `memory` lines are shares of a stage's activations.
  ///
  /// Errors: layers that are left over, a cluster that is too small or has no rate for the precision, a map of another
  /// number of devices, times or sizes that do not fit.
  bool apply(const Schedule& schedule, const World& world, CostSet& costs, Diagnostics& sink) const override;

  /// What cannot be known before there is an order: whether each message has a path, and each device room for its peak.
  /// Errors: false, with a diagnostic: two devices without a path; a peak beyond the memory, with what is alive.
  bool verify(const Schedule& schedule, const Program& program, const Timeline& timeline,
              const IdVector<DeviceId, PeakMemory>& peaks, Diagnostics& sink) const;

  /// The same with this many layers on each stage (see ranges_of).
  ModelPrices with(std::vector<std::uint32_t> blocks) const { return {model_, cluster_, map_, std::move(blocks)}; }

  /// The same with the devices on these places.
  ModelPrices on(std::vector<std::uint32_t> map) const { return {model_, cluster_, std::move(map), blocks_}; }

  const std::vector<std::uint32_t>& map() const { return map_; }
  const Model& model() const { return *model_; }
  const Cluster& cluster() const { return *cluster_; }
  /// Where the ranks of a device sit that a sequence of this degree takes: of its context ranks the first. A group without a
  /// path has no link here. Context ranks that are unlike share the sequence by their peak rates.
  Site site(std::uint32_t device, const Degree& degree) const;
  Site site(std::uint32_t device) const { return site(device, model_->parallel.all()); }
  /// The kind with the least memory among its ranks.
  const Accelerator& smallest(std::uint32_t device) const;
  /// The first accelerator of a device.
  std::uint32_t accelerator(std::uint32_t device) const {
    return (map_.empty() ? device : map_[device]) * model_->parallel.width();
  }

 private:
  bool verify_paths(const Program& program, Diagnostics& sink) const;
  bool verify_memory(const Schedule& schedule, const Program& program, const Timeline& timeline,
                     const IdVector<DeviceId, PeakMemory>& peaks, Diagnostics& sink) const;

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Cluster> cluster_;
  std::vector<std::uint32_t> map_;
  std::vector<std::uint32_t> blocks_;
};

/// "80 GB", "1.5 MB": at most three digits, in powers of ten.
std::string bytes_text(double bytes);

}  // namespace stave
