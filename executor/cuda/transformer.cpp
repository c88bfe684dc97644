#include "executor/cuda/transformer.h"

#include <algorithm>
#include <map>

#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/transformer_stage.h"

namespace stave {

CudaTransformer::CudaTransformer(const ModelConfig& config, std::shared_ptr<const Corpus> corpus, FreezeRatios freeze,
                                 LaneOf lane_of, Precision precision)
    : Transformer(config, std::move(corpus), std::move(freeze)), lane_of_(std::move(lane_of)), precision_(precision) {}

CudaTransformer::~CudaTransformer() = default;

void CudaTransformer::create() {
  struct Made {
    StageId s;
    CudaLane lane;
    CudaTransformerStage* stage;
  };
  std::vector<Made> made;
  // Products share memory, so that each stream has its own.
  std::map<cudaStream_t, std::shared_ptr<CudaMatmul>> products;
  make_stages([&](StageId s, DeviceId d, std::vector<FrozenGroups> frozen) {
    const CudaLane lane = lane_of_(d);
    check(cudaSetDevice(lane.gpu), "cudaSetDevice");
    std::shared_ptr<CudaMatmul>& matmul = products[lane.stream];
    if (matmul == nullptr) matmul = std::make_shared<CudaMatmul>(precision_);
    auto stage = std::make_unique<CudaTransformerStage>(config_, layout(s), spans_, corpus_, partition_.kept_of(s),
                                                        std::move(frozen), lane, matmul);
    made.push_back({s, lane, stage.get()});
    return stage;
  });
  for (const Made& each : made) {
    check(cudaSetDevice(each.lane.gpu), "cudaSetDevice");
    // Once all its plans are known; the second time it has what it needs.
    products[each.lane.stream]->allocate();
    const DeviceBytes value(payload_bytes("activation"));
    std::vector<DeviceBytes> memory;
    std::vector<std::byte*> stashes;
    for (std::uint32_t q = 0; q < partition_.slices_of(0); ++q)
      stashes.push_back(memory.emplace_back(stash_bytes(each.s)).data());
    // What zeroed the memory ran on another stream.
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    warm_up(each.s, *each.stage, value.data(), stashes);
    each.stage->warm_up();
    check(cudaStreamSynchronize(each.lane.stream), "first pass through a stage");
  }
}

void CudaTransformer::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes != 0) check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
}

std::size_t CudaTransformer::scratch_bytes(const StageLayout& of) const {
  return CudaTransformerStage::scratch_floats(of, *spans_) * sizeof(float);
}

}  // namespace stave
