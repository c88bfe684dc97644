#include "executor/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>

#include "core/operations.h"
#include "executor/aligned.h"
#include "executor/cpu/matmul.h"

namespace stave {

namespace {

void step_in_order(Workload& workload, std::uint32_t stages, std::uint32_t microbatches,
                   const std::vector<AlignedBytes>& stashes, const AlignedBytes& value) {
  for (std::uint32_t m = 0; m < microbatches; ++m) {
    for (std::uint32_t s = 0; s < stages; ++s)
      workload.stage(StageId(s))
          ->forward(m, s == 0 ? nullptr : value.data(), s + 1 == stages ? nullptr : value.data(), stashes[s].data());
    for (std::uint32_t s = stages; s-- > 0;) {
      Stage& stage = *workload.stage(StageId(s));
      stage.input_gradient(m, s + 1 == stages ? nullptr : value.data(), s == 0 ? nullptr : value.data(),
                           stashes[s].data());
      stage.weight_gradient(m, stashes[s].data());
    }
  }
}

// Greatest difference over the greatest element; infinite where one is not a number.
double difference(const ParameterView& a, const ParameterView& b) {
  const float* x = static_cast<const float*>(a.gradient);
  const float* y = static_cast<const float*>(b.gradient);
  double most = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.count; ++i) {
    const double distance = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    if (!std::isfinite(distance)) return HUGE_VAL;
    most = std::max(most, distance);
    largest = std::max(largest, std::abs(static_cast<double>(y[i])));
  }
  if (most == 0) return 0;
  return largest == 0 ? HUGE_VAL : most / largest;
}

}  // namespace

Result<double> run_reference(Workload& workload, std::uint32_t stages, std::uint32_t microbatches,
                             std::uint64_t steps) {
  if (!workload.computes()) return Failure{"this workload computes nothing that could be compared"};
  if (Result<void> fits = workload.configure(stages, microbatches); !fits) return fits.failure();
  try {
    workload.create();
    use_one_thread();
    std::vector<AlignedBytes> stashes;
    for (std::uint32_t s = 0; s < stages; ++s) stashes.emplace_back(workload.stash_bytes(StageId(s)));
    const AlignedBytes value(std::max(workload.payload_bytes("activation"), workload.payload_bytes("gradient")));
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (std::uint32_t s = 0; s < stages; ++s) workload.stage(StageId(s))->begin_step(step);
      step_in_order(workload, stages, microbatches, stashes, value);
      for (std::uint32_t s = 0; s < stages; ++s) workload.stage(StageId(s))->optimizer_step();
    }
    return workload.stage(StageId(stages - 1))->loss();
  } catch (const std::exception& e) {
    return Failure{std::string("the reference run failed: ") + e.what()};
  }
}

std::vector<bool> accumulates_in_order(const Table& table) {
  const OpSet& ops = table.ops;
  const KindId forward = ops.find(Operation::Forward);
  const KindId weight = ops.find(Operation::WeightGradient);
  if (!forward.valid() || !weight.valid()) return {};
  const std::uint32_t stages = ops.kinds()[forward].extent(IndexRole::Stage);
  std::vector<bool> result(stages, true);
  std::vector<std::int64_t> last(stages, -1);
  for (OpId op : table.entries) {
    const OpKind& kind = ops.kind(op);
    const bool accumulates = kind.operation == Operation::WeightGradient || kind.operation == Operation::Backward ||
                             std::ranges::find(kind.parts, weight) != kind.parts.end();
    if (!accumulates) continue;
    const std::uint32_t s = ops.stage(op);
    const std::uint32_t m = ops.microbatch(op);
    if (s >= stages) continue;
    if (last[s] >= m) result[s] = false;
    last[s] = m;
  }
  return result;
}

Comparison compare_gradients(const Table& table, Workload& run, Workload& reference) {
  Comparison result;
  const std::vector<bool> in_order = accumulates_in_order(table);
  result.must_be_exact = std::ranges::find(in_order, false) == in_order.end();
  result.agrees = true;
  for (std::uint32_t s = 0; s < in_order.size(); ++s) {
    const std::vector<ParameterView> a = run.stage(StageId(s))->parameters();
    const std::vector<ParameterView> b = reference.stage(StageId(s))->parameters();
    STAVE_CHECK(a.size() == b.size(), "two workloads of one model differ in their tensors");
    for (std::size_t i = 0; i < a.size(); ++i) {
      STAVE_CHECK(a[i].count == b[i].count && a[i].element == b[i].element, "a tensor has two shapes");
      const std::size_t size = a[i].element == Element::Float32 ? sizeof(float) : sizeof(std::uint64_t);
      ++result.tensors;
      if (std::memcmp(a[i].gradient, b[i].gradient, a[i].count * size) == 0) {
        ++result.exact;
        continue;
      }
      const bool whole = a[i].element == Element::Whole64;
      const double worst = whole ? HUGE_VAL : difference(a[i], b[i]);
      if (worst >= result.worst) {
        result.worst = worst;
        result.worst_tensor = a[i].name;
      }
      if (whole || result.must_be_exact || worst > kGradientTolerance) result.agrees = false;
    }
  }
  return result;
}

}  // namespace stave
