#include "executor/cuda/gpu.h"

#include <unistd.h>

#include <functional>
#include <map>
#include <utility>

#include "executor/cuda/backend.h"
#include "executor/cuda/check.h"
#include "executor/cuda/host_workload.h"
#include "executor/cuda/run_cuda.h"
#include "executor/cuda/transformer.h"
#include "executor/ranks/gpus.h"

namespace stave {

namespace {

GpusSeen gpus_seen(std::optional<std::uint32_t> local_rank) {
  GpusSeen seen;
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  seen.host = host;
  seen.local_rank = local_rank;
  const Result<int> count = count_gpus();
  if (!count) seen.error = count.failure().message;
  cudaError_t status = cudaSuccess;
  for (int g = 0; count && g < count.value() && status == cudaSuccess; ++g) {
    char bus[32] = {};
    status = cudaDeviceGetPCIBusId(bus, sizeof bus, g);
    seen.gpus.emplace_back(bus);
  }
  if (status != cudaSuccess) seen.error = cudaGetErrorString(status);
  return seen;
}

/// Memory and stream of a device are those of its lane, which are known when its stages are made.
class CudaHomes : public StageHomes {
 public:
  explicit CudaHomes(LaneOf lane_of) : lane_of_(std::move(lane_of)) {}

  std::uint32_t where() const override { return STAVE_STAGE_ON_CUDA; }
  Memory& memory(DeviceId d) override {
    std::unique_ptr<CudaMemory>& mine = memories_[d];
    if (mine == nullptr) mine = std::make_unique<CudaMemory>(lane_of_(d).stream, false);
    return *mine;
  }
  void* stream(DeviceId d) override { return lane_of_(d).stream; }
  void enter(DeviceId d) override { check(cudaSetDevice(lane_of_(d).gpu), "cudaSetDevice"); }
  void leave(DeviceId) override { check(cudaDeviceSynchronize(), "what the library's create() has enqueued"); }
  void copy(void* to, const void* from, std::size_t bytes) const override {
    if (bytes != 0) check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  }

 private:
  LaneOf lane_of_;
  std::map<DeviceId, std::unique_ptr<CudaMemory>> memories_;
};

class CudaGpu : public Gpu {
 public:
  /// Without lanes they are made when the run knows its GPU.
  CudaGpu(const GpuOptions& options, std::unique_ptr<CudaLanes> lanes) : options_(options), lanes_(std::move(lanes)) {}

  std::unique_ptr<Workload> transformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus,
                                        FreezeRatios freeze) override {
    return std::make_unique<CudaTransformer>(config, std::move(corpus), std::move(freeze), lane_of(),
                                             options_.is_bf16 ? Precision::BFloat16 : Precision::Float32);
  }

  std::unique_ptr<StageHomes> stage_homes() override { return std::make_unique<CudaHomes>(lane_of()); }

  std::unique_ptr<Workload> on_host(Workload& inner) override {
    auto result = std::make_unique<HostWorkload>(inner, lane_of());
    sum_ = [stages = result.get()](StageId s, cudaStream_t stream) { stages->enqueue_sum(s, stream); };
    on_host_ = true;
    return result;
  }

  Result<RunReport> run(const Program& program, Workload& workload, const RunOptions& options) override {
    if (options.ranks != nullptr) {
      const Result<std::uint32_t> gpu = find_gpu(*options.ranks, gpus_seen(options.ranks->local_rank));
      if (!gpu) return gpu.failure();
      Result<std::unique_ptr<CudaLanes>> lanes = CudaLanes::make(
          program.table.devices(), true, DeviceId(options.ranks->rank()), static_cast<int>(gpu.value()));
      if (!lanes) return lanes.failure();
      lanes_ = std::move(*lanes);
    }
    CudaOptions cuda;
    cuda.transport = options_.is_nccl ? CudaTransport::Nccl : CudaTransport::Local;
    cuda.graph = options_.is_graph;
    cuda.serial = options_.is_serial;
    cuda.slots_on_host = on_host_;
    cuda.enqueue_sum = sum_;
    return run_cuda(program, workload, *lanes_, options, cuda);
  }

 private:
  LaneOf lane_of() const {
    return [this](DeviceId d) { return (*lanes_)[d]; };
  }

  const GpuOptions options_;
  std::unique_ptr<CudaLanes> lanes_;
  std::function<void(StageId, cudaStream_t)> sum_;
  bool on_host_ = false;
};

}  // namespace

Result<std::unique_ptr<Gpu>> make_cuda_gpu(std::uint32_t devices, const GpuOptions& options) {
  if (options.is_rank) return std::unique_ptr<Gpu>(std::make_unique<CudaGpu>(options, nullptr));
  Result<std::unique_ptr<CudaLanes>> lanes = CudaLanes::make(devices, options.is_nccl);
  if (!lanes) return lanes.failure();
  return std::unique_ptr<Gpu>(std::make_unique<CudaGpu>(options, std::move(*lanes)));
}

}  // namespace stave
