#include "executor/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <numeric>
#include <utility>

#include "core/operations.h"
#include "executor/aligned.h"
#include "executor/cpu/matmul.h"
#include "executor/reduction.h"
#include "executor/stage/host_view.h"

namespace stave {

namespace {

// Stashes of every slice at every stage, for one microbatch.
class Reference {
 public:
  Reference(Workload& workload, const Partition& partition)
      : workload_(workload),
        partition_(partition),
        value_(std::max(workload.payload_bytes("activation"), workload.payload_bytes("gradient"))) {
    for (std::uint32_t s = 0; s < partition.stages; ++s) {
      stashes_.emplace_back();
      for (std::uint32_t q = 0; q < partition.slices && visited(s); ++q)
        stashes_.back().push_back(memory_.emplace_back(workload.stash_bytes(StageId(s))).data());
    }
    use_one_thread();
  }

  Result<void> step(std::uint64_t step) {
    for (std::uint32_t s = 0; s < partition_.stages; ++s)
      if (visited(s)) workload_.stage(StageId(s))->begin_step(step);
    if (!partition_.has_updates()) {
      for (std::uint32_t m = 0; m < partition_.microbatches; ++m) run(m);
    } else if (Result<void> done = run_between_updates(); !done) {
      return done;
    }
    for (const std::vector<StageId>& group : workload_.tied()) reduce_tied(partition_, workload_, group);
    for (std::uint32_t s = 0; s < partition_.stages; ++s) {
      if (!visited(s)) continue;
      Stage& stage = *workload_.stage(StageId(s));
      if (partition_.updates[StageId(s)] == 0) stage.optimizer_step(0, 0);
      stage.settle(partition_.updates[StageId(s)]);
    }
    return {};
  }

 private:
  bool visited(std::uint32_t s) const { return !partition_.devices[StageId(s)].empty(); }

  void run(std::uint32_t m) {
    for (std::uint32_t q = 0; q < partition_.slices_of(m); ++q) forward(m, q);
    for (std::uint32_t q = partition_.slices_of(m); q-- > 0;) backward(m, q);
  }

  template <class Visit>
  void each_triple(std::uint32_t m, const Visit& visit) const {
    for (StageId s : partition_.route(m))
      for (std::uint32_t q = 0; q < partition_.slices_of(m); ++q) visit(s, partition_.triple(s.value, m, q));
  }

  // Version v of a stage lies at place v, and is made as soon as all its gradients are there.
  Result<void> run_between_updates() {
    std::vector<std::uint32_t> made(partition_.stages, 0);
    // By stage and update, how many gradients it still waits for.
    std::vector<std::vector<std::uint32_t>> missing;
    for (std::uint32_t s = 0; s < partition_.stages; ++s)
      missing.emplace_back(partition_.updates[StageId(s)] + std::size_t{1}, 0);
    for (std::uint32_t m = 0; m < partition_.microbatches; ++m)
      each_triple(m, [&](StageId s, std::size_t triple) { ++missing[s.value][partition_.used_by[triple]]; });
    const auto update = [&](std::uint32_t s) {
      while (made[s] < partition_.updates[StageId(s)] && missing[s][made[s] + 1] == 0) {
        workload_.stage(StageId(s))->optimizer_step(made[s], made[s] + 1);
        ++made[s];
      }
    };
    const auto may_run = [&](std::uint32_t m) {
      bool result = true;
      each_triple(m, [&](StageId s, std::size_t triple) {
        const std::uint32_t used_by = partition_.used_by[triple];
        result = result && partition_.reads_version[triple] <= made[s.value] &&
                 (used_by == 0 || used_by == made[s.value] + 1);
      });
      return result;
    };
    std::vector<std::uint32_t> left(partition_.microbatches);
    std::iota(left.begin(), left.end(), 0u);
    while (!left.empty()) {
      const auto next = std::ranges::find_if(left, may_run);
      if (next == left.end())
        return Failure{"no order of whole microbatches reads and makes the same versions of the weights"};
      run(*next);
      each_triple(*next, [&](StageId s, std::size_t triple) { --missing[s.value][partition_.used_by[triple]]; });
      left.erase(next);
      for (std::uint32_t s = 0; s < partition_.stages; ++s)
        if (visited(s)) update(s);
    }
    return {};
  }

  Part part(StageId s, std::uint32_t m, std::uint32_t q) const {
    Part result;
    result.microbatch = m;
    result.slice = q;
    result.begins = partition_.begins(s, m);
    result.ends = partition_.ends(s, m);
    if (partition_.has_updates()) result.weights = partition_.reads_version[partition_.triple(s.value, m, q)];
    result.stashes = stashes_[s.value];
    return result;
  }

  void forward(std::uint32_t m, std::uint32_t q) {
    for (StageId s : partition_.route(m)) {
      const Part mine = part(s, m, q);
      workload_.stage(s)->forward(mine, mine.begins ? nullptr : value_.data(), mine.ends ? nullptr : value_.data());
    }
  }

  void backward(std::uint32_t m, std::uint32_t q) {
    const std::vector<StageId>& route = partition_.route(m);
    for (auto s = route.rbegin(); s != route.rend(); ++s) {
      const Part mine = part(*s, m, q);
      Stage& stage = *workload_.stage(*s);
      stage.input_gradient(mine, mine.ends ? nullptr : value_.data(), mine.begins ? nullptr : value_.data());
      stage.weight_gradient(mine);
    }
  }

  Workload& workload_;
  const Partition& partition_;
  std::vector<AlignedBytes> memory_;
  std::vector<std::vector<std::byte*>> stashes_;
  AlignedBytes value_;
};

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

Result<double> run_reference(Workload& workload, const Partition& partition, std::uint64_t steps) {
  if (!workload.computes()) return Failure{"this workload computes nothing that could be compared"};
  const Partition plain = plainly(partition);
  if (Result<void> fits = workload.configure(plain); !fits) return fits.failure();
  try {
    workload.create();
    Reference reference(workload, plain);
    for (std::uint64_t step = 0; step < steps; ++step)
      if (Result<void> done = reference.step(step); !done) return done.failure();
    return workload.loss();
  } catch (const std::exception& e) {
    return Failure{std::string("the reference run failed: ") + e.what()};
  }
}

std::uint64_t reference_buffer_bytes(const Workload& workload, const Partition& partition) {
  std::uint64_t bytes = std::max(workload.payload_bytes("activation"), workload.payload_bytes("gradient"));
  for (std::uint32_t s = 0; s < partition.stages; ++s)
    if (!partition.devices[StageId(s)].empty())
      bytes += std::uint64_t{workload.stash_bytes(StageId(s))} * partition.slices;
  return bytes;
}

std::vector<bool> accumulates_in_order(const Table& table) {
  const OpSet& ops = table.ops;
  const KindId forward = ops.find(Operation::Forward);
  const KindId weight = ops.find(Operation::WeightGradient);
  if (!forward.valid() || !weight.valid()) return {};
  const std::uint32_t stages = ops.kinds()[forward].extent(IndexRole::Stage);
  std::vector<bool> result(stages, true);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> last(stages, {0, 0});
  std::vector<DeviceId> device(stages);
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const OpId op = table.entries[position];
    const OpKind& kind = ops.kind(op);
    const bool accumulates = kind.operation == Operation::WeightGradient || kind.operation == Operation::Backward ||
                             std::ranges::find(kind.parts, weight) != kind.parts.end();
    if (!accumulates) continue;
    const std::uint32_t s = ops.stage(op);
    if (s >= stages) continue;
    // Rises from one W to the next.
    const std::pair key(ops.microbatch(op), UINT32_MAX - slice_of(ops, op));
    const DeviceId d = table.device_of(position);
    if (device[s].valid() && (device[s] != d || last[s] >= key)) result[s] = false;
    device[s] = d;
    last[s] = key;
  }
  return result;
}

namespace {

void compare_stage(const Workload& run, std::vector<ParameterView> a, const std::vector<ParameterView>& b,
                   Comparison& result) {
  STAVE_CHECK(a.size() == b.size(), "two workloads of one model differ in their tensors");
  for (std::size_t i = 0; i < a.size(); ++i) {
    STAVE_CHECK(a[i].count == b[i].count && a[i].element == b[i].element, "a tensor has two shapes");
    const std::size_t size = a[i].element == Element::Float32 ? sizeof(float) : sizeof(std::uint64_t);
    auto* const there = static_cast<std::byte*>(const_cast<void*>(a[i].gradient));
    const HostView gradient(run, {{there, a[i].count * size}});
    a[i].gradient = gradient.pieces().front().data();
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
    if (whole || result.must_be_exact || worst > result.tolerance) result.agrees = false;
  }
}

}  // namespace

Comparison compare_gradients(const Table& table, Workload& run, Workload& reference) {
  Comparison result;
  const std::vector<bool> in_order = accumulates_in_order(table);
  result.must_be_exact = run.is_on_host() && std::ranges::find(in_order, false) == in_order.end();
  result.tolerance = run.is_on_host() ? kGradientTolerance : kGpuGradientTolerance;
  result.agrees = true;
  for (std::uint32_t s = 0; s < in_order.size(); ++s) {
    // All replicas must have the same, which is the whole gradient; those of other processes are compared there.
    for (std::uint32_t r = 0; r < table.devices(); ++r)
      if (Stage* stage = run.stage(StageId(s), r))
        compare_stage(run, stage->parameters(), reference.stage(StageId(s))->parameters(), result);
  }
  return result;
}

}  // namespace stave
