#include "executor/cuda/run_cuda.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <stdexcept>

#include "executor/cuda/check.h"
#include "executor/cuda/cuda_rank.h"
#include "executor/measure.h"
#include "executor/prepare.h"
#include "executor/team.h"

namespace stave {

namespace {

// A call that does not return is noticed later than lanes that stand still, whose host thread can say where.
constexpr Ticks kCallNs = 2'000'000'000;

// What of a run there is not on GPUs.
Result<void> check_for_gpus(const Program& program, const Plan& plan, const RunOptions& options,
                            const CudaOptions& cuda) {
  if (options.clock != Clock::Wall) return Failure{"a run on GPUs keeps the wall clock"};
  if (options.measures_norm || options.clip_norm > 0)
    return Failure{"the norm of gradients is not measured on GPUs, nor are they clipped"};
  if (options.checkpoint_every != 0 || options.resumes) return Failure{"there are no checkpoints of runs on GPUs"};
  if (std::ranges::any_of(options.setup_ns, [](Ticks setup) { return setup > 0; }))
    return Failure{"changes between ops take no time of their own on GPUs: the schedule's `cost ... to ...` cannot be run"};
  const auto keeps_several = [](std::uint32_t kept) { return kept > 1; };
  if (cuda.graph && std::ranges::any_of(plan.model.kept, keeps_several))
    return Failure{"a schedule whose stages keep several versions of their weights is not captured as a graph: where "
                   "they lie changes from step to step"};
  bool sums = false;
  for (const std::vector<DeviceId>& devices : plan.model.devices) sums = sums || devices.size() > 1;
  if (sums && cuda.transport == CudaTransport::Local && !cuda.enqueue_sum)
    return Failure{"the stages do not say how the gradients of their replicas are summed on a GPU"};
  if (cuda.here.valid() && (cuda.transport != CudaTransport::Nccl || cuda.here.value >= program.table.devices()))
    return Failure{"a rank of its own is for a device of the schedule and the transport nccl"};
  return {};
}

class Session {
 public:
  Session(const Program& program, const Plan& plan, Workload& workload, const RunOptions& options,
          const CudaOptions& cuda)
      : program_(program),
        plan_(plan),
        workload_(workload),
        options_(options),
        cuda_(cuda),
        measured_(program),
        team_(cuda.transport == CudaTransport::Local || cuda.here.valid() ? 1 : program.table.devices(), [this] {
          for (const std::unique_ptr<CudaRank>& rank : ranks_)
            if (rank != nullptr) rank->abort_all();
        }) {}

  // What cannot be let go of, because the GPU still works on it, is kept for as long as the process lives.
  ~Session() {
    for (std::unique_ptr<CudaRank>& rank : ranks_)
      if (rank != nullptr && !rank->drain()) static_cast<void>(rank.release());
  }

  Result<RunReport> run(const CudaLanes& lanes, const std::vector<std::size_t>& payloads) {
    if (cuda_.transport == CudaTransport::Local) {
      if (Result<void> made = add(DeviceId(), lanes, payloads); !made) return made.failure();
    } else {
      for (std::uint32_t d = 0; d < program_.table.devices(); ++d)
        if (!cuda_.here.valid() || cuda_.here.value == d)
          if (Result<void> made = add(DeviceId(d), lanes, payloads); !made) return made.failure();
      const std::size_t count = Communicators::count(program_, plan_, cuda_.serial);
      if (!cuda_.here.valid() || cuda_.here.value == 0) ids_ = Communicators::make_ids(count);
      if (cuda_.here.valid() && cuda_.share)
        if (Result<void> shared = cuda_.share(ids_); !shared) return shared.failure();
      if (ids_.size() != count * Communicators::kIdBytes)
        return Failure{"the ranks do not agree in their communicators"};
    }
    Result<void> ended = team_.run([this](std::uint32_t member) { work(member); }, [this] { watch(); });
    if (!ended) return ended.failure();
    report_.declared = plan_.declared;
    if (has_times_) measured_.report(report_);
    return std::move(report_);
  }

 private:
  Result<void> add(DeviceId rank, const CudaLanes& lanes, const std::vector<std::size_t>& payloads) {
    Result<LanePlan> lane_plan = plan_lanes(program_, plan_, {rank, cuda_.serial});
    if (!lane_plan) return lane_plan.failure();
    ranks_.push_back(std::make_unique<CudaRank>(program_, plan_, workload_, lanes, options_, cuda_, rank,
                                                std::move(*lane_plan), payloads, team_.stopped()));
    return {};
  }

  void watch() {
    if (team_.stopped()) return;
    if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed)) {
      report_.interrupted = true;
      return team_.stop();
    }
    for (const std::unique_ptr<CudaRank>& rank : ranks_)
      if (const std::string error = rank->error(); !error.empty()) return team_.fail("NCCL: " + error + at());
    const Ticks now = now_ns();
    Ticks longest = 0;
    Ticks shortest = now;
    for (const std::unique_ptr<CudaRank>& rank : ranks_) {
      longest = std::max(longest, now - rank->alive());
      shortest = std::min(shortest, now - rank->alive());
    }
    // Who waits for others at the end of a step is not alive either.
    if (shortest > cuda_.stall_ns || longest > 4 * cuda_.stall_ns + kCallNs)
      team_.fail("no lane went on for " + std::to_string(longest / 1'000'000) + " ms" + at());
  }

  std::string at() const {
    std::string text = "; they are at\n";
    for (const std::unique_ptr<CudaRank>& rank : ranks_) text += rank->positions();
    text.pop_back();
    return text;
  }

  void work(std::uint32_t member) {
    CudaRank& rank = *ranks_[member];
    try {
      rank.connect(ids_);
      for (std::uint64_t step = 0; step < options_.steps; ++step) {
        rank.begin_step(step);
        const auto begin = [&] {
          begun_ns_ = now_ns();
          has_begun_ = true;
        };
        if (!team_.meet(begin)) return;
        rank.run_table(step);
        rank.end_step();
        if (!team_.meet([&] { finish(step); })) return;
      }
    } catch (const std::exception& e) {
      // A call may find the error before the thread that watches; where lanes are is known once all are connected.
      team_.fail(has_begun_ ? e.what() + at() : e.what());
    }
  }

  void finish(std::uint64_t step) {
    StepReport report;
    report.step = step;
    report.tokens = workload_.tokens_per_step();
    report.loss = workload_.loss();
    report.seconds = static_cast<double>(now_ns() - begun_ns_) * 1e-9;
    for (const std::unique_ptr<CudaRank>& rank : ranks_) report.makespan_ns = std::max(report.makespan_ns, rank->table_ns());
    if (ranks_.front()->has_times()) {
      const Timeline timeline = collect();
      report.makespan_ns = makespan(program_, timeline);
      report.bubble = bubble(program_, timeline);
      measured_.add(step, timeline);
      has_times_ = true;
    }
    report_.losses.push_back(report.loss);
    if (options_.on_step) options_.on_step(report);
    if (!std::isfinite(report.loss))
      team_.fail("the loss of step " + std::to_string(step + 1) + " is not finite; try a lower learning rate");
  }

  // A transfer lasts from when both its ends are ready until it is received.
  Timeline collect() const {
    Timeline timeline;
    timeline.ticks_per_unit = 1000;
    timeline.unit = "us";
    timeline.start.assign(program_.nodes(), 0);
    timeline.end.assign(program_.nodes(), 0);
    for (const std::unique_ptr<CudaRank>& rank : ranks_)
      for (const CudaRank::Times& each : rank->times()) {
        Ticks& start = timeline.start[each.node.value];
        Ticks& end = timeline.end[each.node.value];
        start = std::max(start, each.start - begun_ns_);
        end = each.action == Action::Send && !cuda_.here.valid() ? std::max(end, start) : each.end - begun_ns_;
      }
    for (std::uint32_t n = 0; n < program_.nodes(); ++n) timeline.end[n] = std::max(timeline.end[n], timeline.start[n]);
    for (std::uint32_t i = 0; i < program_.table.size(); ++i)
      for (std::uint32_t each = 1; each < plan_.together[i]; ++each) {
        timeline.start[i + each] = timeline.start[i];
        timeline.end[i] = timeline.end[i + each];
      }
    return timeline;
  }

  const Program& program_;
  const Plan& plan_;
  Workload& workload_;
  const RunOptions& options_;
  const CudaOptions& cuda_;
  std::vector<std::unique_ptr<CudaRank>> ranks_;
  std::vector<std::byte> ids_;
  Measured measured_;
  bool has_times_ = false;
  Ticks begun_ns_ = 0;
  std::atomic<bool> has_begun_ = false;
  RunReport report_;
  Team team_;
};

}  // namespace

Result<std::unique_ptr<CudaLanes>> CudaLanes::make(std::uint32_t devices, bool gpu_each, DeviceId here, int gpu) {
  int gpus = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&gpus); status != cudaSuccess)
    return Failure{std::string("no GPU: ") + cudaGetErrorString(status)};
  if (gpu < 0 || gpu >= gpus)
    return Failure{"GPU " + std::to_string(gpu) + " is not here: there are " + std::to_string(gpus)};
  auto lanes = std::make_unique<CudaLanes>();
  lanes->lanes_.resize(devices);
  try {
    for (std::uint32_t d = 0; d < devices; ++d) {
      if (here.valid() && here.value != d) continue;
      CudaLane& lane = lanes->lanes_[DeviceId(d)];
      lane.gpu = gpu_each && !here.valid() ? static_cast<int>(d) % gpus : gpu;
      check(cudaSetDevice(lane.gpu), "cudaSetDevice");
      lane.stream = make_stream(true).release();
    }
  } catch (const std::exception& e) {
    return Failure{e.what()};
  }
  return lanes;
}

CudaLanes::~CudaLanes() {
  for (const CudaLane& lane : lanes_)
    if (lane.stream != nullptr) cudaStreamDestroy(lane.stream);
}

LaneOf CudaLanes::lane_of() const {
  return [this](DeviceId d) { return lanes_[d]; };
}

Result<RunReport> run_cuda(const Program& program, Workload& workload, const CudaLanes& lanes, const RunOptions& options,
                           const CudaOptions& cuda) {
  Result<Plan> plan = make_plan(program, workload.computes());
  if (!plan) return plan.failure();
  if (Result<void> valid = check_options(program, options); !valid) return valid.failure();
  if (Result<void> valid = check_for_gpus(program, *plan, options, cuda); !valid) return valid.failure();
  if (cuda.here.valid())
    for (std::uint32_t d = 0; d < program.table.devices(); ++d) plan->model.here.push_back(cuda.here.value == d);
  if (Result<void> fits = workload.configure(plan->model); !fits) return fits.failure();
  const std::vector<std::size_t> payloads = payload_sizes(program, workload);
  const Result<std::uint64_t> bytes = check_memory(program, *plan, workload, payloads, options.memory_bound_bytes);
  if (!bytes) return bytes.failure();
  std::size_t available = 0;
  std::size_t total = 0;
  const cudaError_t status = cudaMemGetInfo(&available, &total);
  if (status != cudaSuccess) return Failure{std::string("cudaMemGetInfo: ") + cudaGetErrorString(status)};
  if (!cuda.slots_on_host && cuda.transport == CudaTransport::Local && bytes.value() > available)
    return Failure{"the run needs " + std::to_string(bytes.value() >> 20) + " MiB of memory, and the GPU has " +
                   std::to_string(available >> 20) + " MiB left"};
  try {
    workload.create();
    Result<RunReport> report = Session(program, *plan, workload, options, cuda).run(lanes, payloads);
    if (report) report->memory_bytes = bytes.value();
    return report;
  } catch (const std::bad_alloc&) {
    return Failure{"not enough memory for the run: it needs " + std::to_string(bytes.value() >> 20) + " MiB"};
  } catch (const std::exception& e) {
    return Failure{std::string("the run could not start: ") + e.what()};
  }
}

}  // namespace stave
