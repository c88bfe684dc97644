// HostWorkload: any workload of the CPU on the lanes of GPUs. Every call of a stage becomes a host function on the stream
// of its device, so that streams, events and transfers are tried with stages whose results are known. For tests of the
// executor; slots must lie where both host and GPU reach (CudaOptions::slots_on_host).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/cuda/lane.h"
#include "executor/stage/stage.h"

namespace stave {

class HostStage;

class HostWorkload : public Workload {
 public:
  /// `inner` must outlive it; `lane_of` is called by create().
  HostWorkload(Workload& inner, LaneOf lane_of);
  ~HostWorkload() override;

  Result<void> configure(const Partition& partition) override;
  void create() override;
  Stage* stage(StageId s, std::uint32_t replica = 0) override;
  std::size_t payload_bytes(std::string_view payload, std::uint32_t microbatch, std::uint32_t slice) const override {
    return inner_.payload_bytes(payload, microbatch, slice);
  }
  std::size_t payload_bytes(std::string_view payload) const override { return inner_.payload_bytes(payload); }
  std::size_t stash_bytes(StageId s) const override { return inner_.stash_bytes(s); }
  std::uint64_t parameter_bytes() const override { return inner_.parameter_bytes(); }
  std::uint64_t tokens_per_step() const override { return inner_.tokens_per_step(); }
  double loss() const override { return inner_.loss(); }
  bool computes() const override { return inner_.computes(); }

  /// For CudaOptions::enqueue_sum.
  void enqueue_sum(StageId s, cudaStream_t stream);

 private:
  Workload& inner_;
  LaneOf lane_of_;
  Partition partition_;
  // By stage and replica.
  std::vector<std::vector<std::unique_ptr<HostStage>>> stages_;
  // By stage.
  std::vector<std::unique_ptr<std::function<void()>>> sums_;
};

}  // namespace stave
