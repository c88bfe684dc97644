// run_cuda: one training run of a Program on GPUs. A host thread a rank goes through a flat plan made before the first
// step and enqueues on lanes, which are streams; another one watches. What the ops compute is the workload's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "executor/cuda/workload.h"
#include "executor/run.h"

namespace stave {

enum class CudaTransport : std::uint8_t {
  /// All devices of the schedule on one GPU; a message is a copy on the lane of its edge.
  Local,
  /// A GPU a device, each with a rank of its own; a message is a send and a receive.
  Nccl,
};

struct CudaOptions {
  CudaTransport transport = CudaTransport::Local;
  /// The first step is run eagerly, the second captured as one graph (a rank) and replayed from then on.
  bool graph = false;
  /// NCCL: all messages of a rank on one communicator and one stream, instead of one of both a directed edge.
  bool serial = false;
  /// Time of every node by events; without them, and with `graph`, the timeline has none.
  bool times = true;
  /// A step in which for so long no lane ends an item has failed.
  Ticks stall_ns = 10'000'000'000;
  /// NCCL: which device's rank is this process; all of them, each a thread, if it is not valid.
  DeviceId here;
  /// NCCL: gives every process the bytes that device 0's has; may be empty if all ranks are here.
  std::function<Result<void>(std::vector<std::byte>& bytes)> share;
};

/// Runs `options.steps` training steps, as run() does. Not here: checkpoints, the norm of gradients, the virtual clock.
///
/// Errors: those of run(); no GPU or too few; what CUDA or NCCL refuse, in their words; a lane that does not go on, with
/// what each lane is at. Never hangs, but in a call of CUDA that does not return.
Result<RunReport> run_cuda(const Program& program, CudaWorkload& workload, const RunOptions& options,
                           const CudaOptions& cuda);

}  // namespace stave
