// run_cuda: one training run of a Program on GPUs. A host thread a rank goes through a flat plan made before the first
// step and enqueues on lanes, which are streams; another one watches. What the ops compute is the workload's.
//
// Stages here do not compute when they are called but enqueue on the stream of their device (see lane.h). All pointers
// they are given, inputs, outputs and stashes, are memory of the GPU. After create() they neither allocate nor sync. With
// a graph the ops of a table are enqueued once and replayed ever after; so begin_step, which is called before every
// replay, puts what changes from step to step (tokens, learning rate, counters) into fixed places of the GPU's memory.
// settle is called when the update has been enqueued; parameters, state and loss after a sync of all lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/cuda/lane.h"
#include "executor/run.h"

namespace stave {

enum class CudaTransport : std::uint8_t {
  /// All devices of the schedule on one GPU; a message is a copy on the lane of its edge.
  Local,
  /// A GPU a device, each with a rank of its own, a thread or with RunOptions::ranks a process; a message is a send and a
  /// receive.
  Nccl,
};

/// How many GPUs this process sees. To be its first call of CUDA, for which it chooses settings. Errors: CUDA's words.
Result<int> count_gpus();

/// The compute lanes of a run, which its stages are made for.
class CudaLanes {
 public:
  /// Streams of lowest priority on GPU 0, or with `gpu_each` device d on GPU d; of all devices, or of `here` alone, on
  /// its GPU `gpu`. Errors: no GPU, in CUDA's words; fewer than devices.
  static Result<std::unique_ptr<CudaLanes>> make(std::uint32_t devices, bool gpu_each, DeviceId here = {}, int gpu = 0);
  ~CudaLanes();

  /// Lives as long as this; a device that is not here has no stream.
  LaneOf lane_of() const;
  const CudaLane& operator[](DeviceId d) const { return lanes_[d]; }

 private:
  IdVector<DeviceId, CudaLane> lanes_;
};

struct CudaOptions {
  CudaTransport transport = CudaTransport::Local;
  /// The first step is run eagerly, the second captured as one graph (a rank) and replayed from then on.
  bool graph = false;
  /// NCCL: all messages of a rank on one communicator and one stream, instead of one of both a directed edge.
  bool serial = false;
  /// Time of every node by events; without them, and in replayed steps, the timeline has none.
  bool times = true;
  /// A step in which for so long no item of any lane ends has failed.
  Ticks stall_ns = 10'000'000'000;
  /// Stages run as host functions on the streams (see host_workload.h): slots lie where both host and GPU reach.
  bool slots_on_host = false;
  /// Of such stages: enqueues that the gradients of all replicas here of a stage become their sum, added in the order of
  /// their devices.
  std::function<void(StageId, cudaStream_t)> enqueue_sum;
};

/// Runs `options.steps` training steps, as run() does. Not here: the virtual clock, and changes between ops.
///
/// Errors: those of run(); no GPU or too few; what CUDA or NCCL refuse, in their words; lanes that do not go on, with
/// what each is at. Never hangs, but in a call of CUDA that does not return.
Result<RunReport> run_cuda(const Program& program, Workload& workload, const CudaLanes& lanes, const RunOptions& options,
                           const CudaOptions& cuda);

}  // namespace stave
