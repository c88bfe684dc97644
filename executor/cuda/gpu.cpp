#include "executor/cuda/gpu.h"

#include <functional>
#include <utility>

#include "executor/cuda/host_workload.h"
#include "executor/cuda/run_cuda.h"
#include "executor/cuda/transformer.h"

namespace stave {

namespace {

class CudaGpu : public Gpu {
 public:
  CudaGpu(const GpuOptions& options, std::unique_ptr<CudaLanes> lanes) : options_(options), lanes_(std::move(lanes)) {}

  std::unique_ptr<Workload> transformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus,
                                        FreezeRatios freeze) override {
    auto result = std::make_unique<CudaTransformer>(config, std::move(corpus), std::move(freeze), lanes_->lane_of(),
                                                    options_.is_bf16 ? Precision::BFloat16 : Precision::Float32);
    sum_ = [model = result.get()](StageId s, cudaStream_t stream) { model->enqueue_sum(s, stream); };
    return result;
  }

  std::unique_ptr<Workload> on_host(Workload& inner) override {
    auto result = std::make_unique<HostWorkload>(inner, lanes_->lane_of());
    sum_ = [stages = result.get()](StageId s, cudaStream_t stream) { stages->enqueue_sum(s, stream); };
    on_host_ = true;
    return result;
  }

  Result<RunReport> run(const Program& program, Workload& workload, const RunOptions& options) override {
    CudaOptions cuda;
    cuda.transport = options_.is_nccl ? CudaTransport::Nccl : CudaTransport::Local;
    cuda.graph = options_.is_graph;
    cuda.slots_on_host = on_host_;
    cuda.enqueue_sum = sum_;
    return run_cuda(program, workload, *lanes_, options, cuda);
  }

 private:
  const GpuOptions options_;
  const std::unique_ptr<CudaLanes> lanes_;
  std::function<void(StageId, cudaStream_t)> sum_;
  bool on_host_ = false;
};

}  // namespace

Result<std::unique_ptr<Gpu>> make_cuda_gpu(std::uint32_t devices, const GpuOptions& options) {
  Result<std::unique_ptr<CudaLanes>> lanes = CudaLanes::make(devices, options.is_nccl);
  if (!lanes) return lanes.failure();
  return std::unique_ptr<Gpu>(std::make_unique<CudaGpu>(options, std::move(*lanes)));
}

}  // namespace stave
