// The CUDA executor on the stand-ins as a plain program, for builds of core/ and executor/ alone and for the thread
// sanitizer: random orders on every transport give the whole numbers of a sequential run.
//
//   test_cuda_plain [ORDERS]
#include <cstdio>
#include <cstdlib>

#include "executor/cuda/host_workload.h"
#include "executor/cuda/run_cuda.h"
#include "executor/reference.h"
#include "executor/stage/integer.h"
#include "make_program.h"

namespace stave {
namespace {

constexpr std::uint64_t kSteps = 3;
constexpr std::uint64_t kOrders = 6;
constexpr int kWays = 6;

bool agrees(const Program& program, std::uint32_t stages, std::uint32_t microbatches, CudaOptions cuda) {
  const auto lanes = CudaLanes::make(program.table.devices(), cuda.transport == CudaTransport::Nccl);
  IntegerWorkload trained(8);
  IntegerWorkload plain(8);
  RunOptions options;
  options.steps = kSteps;
  Result<RunReport> report = lanes ? Result<RunReport>(RunReport()) : Result<RunReport>(lanes.failure());
  if (lanes) {
    HostWorkload workload(trained, lanes.value()->lane_of());
    cuda.slots_on_host = true;
    cuda.enqueue_sum = [&](StageId s, cudaStream_t stream) { workload.enqueue_sum(s, stream); };
    report = run_cuda(program, workload, *lanes.value(), options, cuda);
  }
  if (!report) {
    std::fprintf(stderr, "%s\n", report.failure().message.c_str());
    return false;
  }
  const Result<double> loss = run_reference(plain, plain_partition(stages, microbatches), kSteps);
  return loss && report.value().losses.back() == loss.value() &&
         compare_gradients(program.table, trained, plain).agrees;
}

}  // namespace
}  // namespace stave

int main(int count, char** arguments) {
  using namespace stave;
  const std::uint64_t orders = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : kOrders;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < orders; ++seed) {
    const Program program = test::make(test::random_order(seed, {0, 1, 2, 1, 0, 2}, 3, 4), 6, 4);
    for (int way = 0; way < kWays; ++way) {
      CudaOptions cuda;
      cuda.transport = way < 2 ? CudaTransport::Local : CudaTransport::Nccl;
      cuda.graph = way % 2 != 0;
      cuda.serial = way > 3;
      if (agrees(program, 6, 4, cuda)) continue;
      std::fprintf(stderr, "seed %d, way %d: differs from the sequential run\n", static_cast<int>(seed), way);
      ++wrong;
    }
  }
  std::printf("%d of %d runs differ\n", wrong, static_cast<int>(orders) * kWays);
  return wrong == 0 ? 0 : 1;
}
