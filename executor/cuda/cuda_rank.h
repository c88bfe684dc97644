// CudaRank: the devices of one rank on one GPU, and the host thread's part of a step: it goes through the lane plan and
// enqueues, or replays what it has enqueued once, and waits by polling. Who watches and when ranks meet is run_cuda's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/control/watchdog.h"
#include "executor/cuda/backend.h"
#include "executor/cuda/communicators.h"
#include "executor/cuda/memory.h"
#include "executor/cuda/run_cuda.h"
#include "executor/device.h"
#include "executor/lane_plan.h"
#include "executor/plan.h"

namespace stave {

/// Who sums gradients: the devices of each stage's replicas, and then those of each group of tied stages.
Communicators::Groups sum_groups(const Partition& model, const std::vector<std::vector<StageId>>& tied);

class CudaRank {
 public:
  /// All must outlive it. `rank` is not valid for that of all devices. Throws std::runtime_error, std::bad_alloc.
  CudaRank(const Program& program, const Plan& plan, Workload& workload, const CudaLanes& lanes,
           const RunOptions& options, const CudaOptions& cuda, DeviceId rank, LanePlan lane_plan,
           const std::vector<std::size_t>& payload_bytes, const std::atomic<bool>& stopped);

  // All of these throw std::runtime_error; those that wait also when the run was stopped, or nothing ends for too long.

  /// Makes the connections to all other ranks.
  void connect(const std::vector<std::byte>& ids);
  /// Gradients to zero; waits until the GPU is idle, which is time 0 of the step.
  void begin_step(std::uint64_t step);
  /// All ops of the table, which should take `predicted_ns`. Returns when they have ended.
  void run_table(Ticks predicted_ns);
  /// Sums over replicas that no op has made. Returns when they have ended.
  void sum_replicas();
  /// Sums over tied stages, whose replicas are alike by then. Likewise.
  void sum_tied();
  /// Puts the sum of the squares of the gradients of each stage whose first replica is here into its place. Of a model
  /// whose memory is the GPU's.
  void add_squares(std::vector<double>& by_stage);
  void scale_gradients(float factor);
  /// Updates, and returns when they have ended.
  void end_step();

  /// Whether the step under way has times of its nodes, and those: of a message its half here.
  bool has_times() const { return measured_; }
  struct Times {
    NodeId node;
    Action action = Action::Op;
    Ticks start = 0;
    Ticks end = 0;
  };
  std::vector<Times> times() const;
  /// When the table ended, as now_ns() counts.
  Ticks table_end_ns() const { return table_end_ns_; }

  std::uint32_t lanes() const { return static_cast<std::uint32_t>(by_lane_.size()); }
  /// Is told what each lane comes to.
  void watch_with(Watchdog* watchdog) { watchdog_ = watchdog; }
  /// What that is, in words, and the rank that it waits for. By any thread.
  Position position(std::uint64_t what) const;

  /// By any thread. When it last saw an item end, or enqueued one, as now_ns() counts.
  Ticks alive() const { return alive_.load(std::memory_order_relaxed); }
  /// A line for every lane that is not done: the item it is at.
  std::string positions() const;
  /// What NCCL has come to by itself; empty if nothing.
  std::string error() { return communicators_ == nullptr ? "" : communicators_->error(); }
  void abort_all();
  /// Waits for what is still on the lanes, but not long. False if they do not end: nothing here may then be released.
  bool drain();

 private:
  struct Transfer {
    DeviceBuffers* source = nullptr;
    DeviceBuffers* target = nullptr;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    Envelope due;
    std::uint16_t payload = 0;
    std::uint32_t out_slot = UINT32_MAX;
    std::uint32_t in_slot = UINT32_MAX;
  };

  void make_transfers();
  void meet_clocks();
  void issue(bool captures);
  void run_item(const LaneItem& item, std::uint32_t index);
  void carry(const LaneItem& item, Transfer& transfer);
  void sum(StageId s, cudaStream_t stream);
  // Those here, with which of its stage's replicas each is.
  void each_replica(const std::function<void(StageId, std::uint32_t)>& visit) const;
  void capture();
  void fork();
  void join();
  // `at_once` does not sleep between looks.
  void wait_for(cudaEvent_t event, bool at_once = false);
  void wait_for_lanes();
  bool sees_progress();
  // Tells the watchdog what a lane is at.
  void look_at(std::size_t lane);
  bool has_ended(std::uint32_t item) const;
  std::string text(NodeId node) const;
  Device& device(DeviceId d) { return *devices_[d.value]; }
  void use_gpu() const;

  const Program& program_;
  const Plan& plan_;
  Workload& workload_;
  const RunOptions& options_;
  const CudaOptions& cuda_;
  const DeviceId rank_;
  const std::atomic<bool>& stopped_;
  const LanePlan lane_plan_;
  const std::vector<std::vector<StageId>> tied_;
  int gpu_ = 0;

  std::vector<std::unique_ptr<CudaMemory>> memories_;
  // By device; null of those of other ranks.
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<CudaMemory> scratch_memory_;
  std::unique_ptr<MemoryBlock> scratch_;
  // By lane; those of computing belong to the CudaLanes.
  std::vector<StreamOwner> owned_;
  std::vector<cudaStream_t> streams_;
  std::vector<EventOwner> events_;
  // By lane: where its last item of a step ends.
  std::vector<EventOwner> ends_;
  // Where host and GPU both know the time; and one to try again with.
  EventOwner begun_;
  EventOwner spare_;
  EventOwner done_;
  // By item, if times are taken.
  std::vector<EventOwner> starts_;
  std::vector<EventOwner> stops_;
  // By item.
  std::vector<Transfer> transfers_;
  std::vector<Ticks> sleeps_;
  // By lane its items, and the first that was not seen to have ended.
  std::vector<std::vector<std::uint32_t>> by_lane_;
  std::vector<std::uint32_t> cursor_;
  // Parts of a sum of squares, and two such sums by stage; empty if the norm of gradients is not measured.
  DeviceBytes parts_;
  DeviceBytes squares_;
  std::unique_ptr<Communicators> communicators_;
  GraphOwner graph_;

  bool measured_ = false;
  bool warm_ = false;
  Ticks origin_ns_ = 0;
  Ticks table_end_ns_ = 0;
  Watchdog* watchdog_ = nullptr;
  Ticks predicted_ns_ = 0;
  // By item, as profilers show it, and by event the item behind which it is recorded.
  std::vector<std::string> names_;
  std::vector<std::uint32_t> recorded_by_;
  std::atomic<std::uint64_t> step_ = 0;
  std::atomic<std::uint32_t> issued_ = 0;
  std::atomic<Ticks> alive_ = 0;
};

}  // namespace stave
