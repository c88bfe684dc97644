// Gpu: the seam to runs on GPUs. The libraries of CUDA are large, so a program that was asked for none of this does not
// load them: who has them sets `gpu_maker` (executor/cuda/gpu.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/program.h"
#include "core/result.h"
#include "executor/data.h"
#include "executor/run.h"
#include "executor/stage/config.h"
#include "executor/stage/freeze.h"
#include "executor/stage/stage.h"
#include "executor/stage/stage_homes.h"

namespace stave {

struct GpuOptions {
  /// A GPU a device, messages by NCCL; else all devices on one GPU, a message being a copy there.
  bool is_nccl = false;
  /// Of nccl: this process is one rank of several, with one device; which, and on which GPU, the run finds out.
  bool is_rank = false;
  /// All messages of a rank on one communicator and one stream.
  bool is_serial = false;
  /// A step is captured as one graph a rank, and replayed.
  bool is_graph = false;
  /// Factors of products are rounded to bf16, and sums kept in fp32.
  bool is_bf16 = false;
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  /// The language model on GPUs. It, and what on_host gives, must go before this.
  virtual std::unique_ptr<Workload> transformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus,
                                                FreezeRatios freeze) = 0;
  /// Where the stages of a library of one's own have their memory and streams. They must go before this.
  virtual std::unique_ptr<StageHomes> stage_homes() = 0;
  /// A workload of the CPU whose calls become host functions on the streams. `inner` must outlive it.
  virtual std::unique_ptr<Workload> on_host(Workload& inner) = 0;
  /// As stave::run, by the wall clock. One workload of the above.
  virtual Result<RunReport> run(const Program& program, Workload& workload, const RunOptions& options) = 0;
};

/// Makes what a schedule of `devices` devices runs on. Errors: no GPU, or too few, in CUDA's words.
using GpuMaker = Result<std::unique_ptr<Gpu>> (*)(std::uint32_t devices, const GpuOptions& options);
inline GpuMaker gpu_maker = nullptr;

}  // namespace stave
