#include "executor/cuda/run_cuda.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "executor/control/watchdog.h"
#include "executor/cuda/check.h"
#include "executor/cuda/cuda_rank.h"
#include "executor/gradients.h"
#include "executor/prepare.h"
#include "executor/ranks/ranks.h"
#include "executor/step_end.h"
#include "executor/steps.h"
#include "executor/team.h"

namespace stave {

namespace {

// A call that does not return is noticed later than lanes that stand still, whose host thread can say where.
constexpr Ticks kCallNs = 2'000'000'000;

// What of a run there is not on GPUs.
Result<void> check_for_gpus(const Plan& plan, const RunOptions& options, const CudaOptions& cuda) {
  if (options.clock != Clock::Wall) return Failure{"a run on GPUs keeps the wall clock"};
  if (cuda.slots_on_host && (options.measures_norm || options.clip_norm > 0))
    return Failure{"the norm of gradients is measured on a GPU, and these stages are the host's"};
  if (std::ranges::any_of(options.setup_ns, [](Ticks setup) { return setup > 0; }))
    return Failure{"changes between ops take no time of their own on GPUs: the schedule's `cost ... to ...` cannot be run"};
  const auto keeps_several = [](std::uint32_t kept) { return kept > 1; };
  if (cuda.graph && std::ranges::any_of(plan.model.kept, keeps_several))
    return Failure{"a schedule whose stages keep several versions of their weights is not captured as a graph: where "
                   "they lie changes from step to step"};
  if (options.ranks != nullptr && cuda.transport != CudaTransport::Nccl)
    return Failure{"ranks of GPUs reach each other by the transport nccl alone"};
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
        squares_(plan.model.stages, 0),
        team_(is_local() || options.ranks != nullptr ? 1 : program.table.devices(), [this] {
          for (const std::unique_ptr<CudaRank>& rank : ranks_) rank->abort_all();
        }),
        steps_(program, plan, workload, options, team_) {}

  // What cannot be let go of, because the GPU still works on it, is kept for as long as the process lives.
  ~Session() {
    watchdog_.reset();
    for (std::unique_ptr<CudaRank>& rank : ranks_)
      if (!rank->drain()) static_cast<void>(rank.release());
  }

  Result<RunReport> run(const CudaLanes& lanes, const std::vector<std::size_t>& payloads) {
    if (Result<void> resumed = steps_.resume(); !resumed) return resumed.failure();
    if (is_local()) {
      if (Result<void> made = add(DeviceId(), lanes, payloads); !made) return made.failure();
    } else {
      for (std::uint32_t d = 0; d < program_.table.devices(); ++d)
        if (plan_.model.is_here(DeviceId(d)))
          if (Result<void> made = add(DeviceId(d), lanes, payloads); !made) return made.failure();
      if (Result<void> made = make_ids(); !made) return made.failure();
    }
    if (options_.ranks != nullptr) watch_over(*ranks_.front());
    Result<void> ended = team_.run([this](std::uint32_t member) { work(member); }, [this] { watch(); });
    if (!ended) return ended.failure();
    return steps_.report();
  }

 private:
  bool is_local() const { return cuda_.transport == CudaTransport::Local; }

  Result<void> add(DeviceId rank, const CudaLanes& lanes, const std::vector<std::size_t>& payloads) {
    Result<LanePlan> lane_plan = plan_lanes(program_, plan_, {rank, cuda_.serial});
    if (!lane_plan) return lane_plan.failure();
    ranks_.push_back(std::make_unique<CudaRank>(program_, plan_, workload_, lanes, options_, cuda_, rank,
                                                std::move(*lane_plan), payloads, team_.stopped()));
    return {};
  }

  // Those of the first rank.
  Result<void> make_ids() {
    const std::size_t count =
        Communicators::count(program_, sum_groups(plan_.model, workload_.tied()), cuda_.serial);
    if (options_.ranks == nullptr || options_.ranks->rank() == 0) ids_ = Communicators::make_ids(count);
    if (options_.ranks == nullptr) return {};
    const auto* mine = reinterpret_cast<const char*>(ids_.data());
    const Result<std::vector<std::string>> all = options_.ranks->control.gather({mine, ids_.size()});
    if (!all) return all.failure();
    const std::string& first = all.value().front();
    if (first.size() != count * Communicators::kIdBytes) return Failure{"the ranks do not agree in their communicators"};
    ids_.assign(reinterpret_cast<const std::byte*>(first.data()),
                reinterpret_cast<const std::byte*>(first.data()) + first.size());
    return {};
  }

  void watch_over(CudaRank& rank) {
    watchdog_ = std::make_unique<Watchdog>(
        options_.ranks->control, rank.lanes(),
        [&rank](std::uint32_t, std::uint64_t what) { return rank.position(what); },
        [this](const std::string& text) {
          if (options_.on_warning) options_.on_warning(text);
        });
    rank.watch_with(watchdog_.get());
  }

  void watch() {
    steps_.watch();
    if (team_.stopped()) return;
    for (const std::unique_ptr<CudaRank>& rank : ranks_)
      if (const std::string error = rank->error(); !error.empty()) return team_.fail(error + at());
    // Of several processes the watchdog knows more.
    if (watchdog_ != nullptr) return;
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
      for (std::uint64_t step = steps_.first(); steps_.is_due(step); ++step) {
        rank.begin_step(step);
        const auto begin = [&] {
          steps_.begin();
          has_begun_ = true;
        };
        if (!team_.meet(begin)) return;
        rank.run_table(steps_.predicted_ns());
        rank.sum_replicas();
        rank.sum_tied();
        if (options_.measures_norm && !clip(rank)) return;
        rank.end_step();
        if (!team_.meet([&] { finish(step); })) return;
      }
    } catch (const std::exception& e) {
      // A call may find the error before the thread that watches; where lanes are is known once all are connected.
      team_.fail(has_begun_ ? e.what() + at() : e.what());
    }
  }

  bool clip(CudaRank& rank) {
    rank.add_squares(squares_);
    const auto find_norm = [&] {
      const Result<double> norm = norm_of(squares_, options_.ranks);
      if (!norm) return team_.fail(norm.failure().message);
      norm_ = norm.value();
    };
    if (!team_.meet(find_norm)) return false;
    // One that is not a number is left to the loss of the next step.
    if (options_.clip_norm > 0 && norm_ > options_.clip_norm)
      rank.scale_gradients(static_cast<float>(options_.clip_norm / norm_));
    return true;
  }

  void finish(std::uint64_t step) {
    Ticks end = steps_.origin();
    for (const std::unique_ptr<CudaRank>& rank : ranks_) end = std::max(end, rank->table_end_ns());
    if (!ranks_.front()->has_times()) return steps_.finish(step, nullptr, end - steps_.origin(), norm_);
    Timeline timeline = collect();
    steps_.finish(step, &timeline, 0, norm_);
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
        start = std::max(start, each.start - steps_.origin());
        end = each.action == Action::Send ? std::max(end, start) : each.end - steps_.origin();
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
  std::atomic<bool> has_begun_ = false;
  // By stage, of those whose first device is here; 0 of others.
  std::vector<double> squares_;
  double norm_ = 0;
  Team team_;
  Steps steps_;
  // It looks into the rank.
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace

Result<int> count_gpus() {
  // Streams beyond the hardware's queues, eight if nobody asks for more, wait behind one another. Read at the first call.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int gpus = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&gpus); status != cudaSuccess)
    return Failure{cudaGetErrorString(status)};
  return gpus;
}

Result<std::unique_ptr<CudaLanes>> CudaLanes::make(std::uint32_t devices, bool gpu_each, DeviceId here, int gpu) {
  const Result<int> found = count_gpus();
  if (!found) return Failure{"no GPU: " + found.failure().message};
  const int gpus = found.value();
  if (gpu < 0 || gpu >= gpus)
    return Failure{"GPU " + std::to_string(gpu) + " is not here: there are " + std::to_string(gpus)};
  const bool all_each = gpu_each && !here.valid();
  if (all_each && devices > static_cast<std::uint32_t>(gpus))
    return Failure{"--transport nccl takes a GPU for each of the " + std::to_string(devices) + " devices, and there " +
                   (gpus == 1 ? "is 1" : "are " + std::to_string(gpus)) + "; --transport local runs all on one"};
  auto lanes = std::make_unique<CudaLanes>();
  lanes->lanes_.resize(devices);
  try {
    for (std::uint32_t d = 0; d < devices; ++d) {
      if (here.valid() && here.value != d) continue;
      CudaLane& lane = lanes->lanes_[DeviceId(d)];
      lane.gpu = all_each ? static_cast<int>(d) : gpu;
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
  if (Result<void> valid = check_for_gpus(*plan, options, cuda); !valid) return valid.failure();
  if (Result<void> ends = StepEnd::check(*plan, workload, options); !ends) return ends.failure();
  if (Result<void> ranks = place(program, options, *plan); !ranks) return ranks.failure();
  if (Result<void> fits = workload.configure(plan->model); !fits) return fits.failure();
  const std::vector<std::size_t> payloads = payload_sizes(program, workload);
  const Result<std::uint64_t> bytes = check_memory(program, *plan, workload, payloads, options.memory_bound_bytes);
  if (!bytes) return bytes.failure();
  std::size_t available = 0;
  std::size_t total = 0;
  cudaError_t status = cudaSetDevice(lanes[DeviceId(options.ranks == nullptr ? 0 : options.ranks->rank())].gpu);
  if (status == cudaSuccess) status = cudaMemGetInfo(&available, &total);
  if (status != cudaSuccess) return Failure{std::string("cudaMemGetInfo: ") + cudaGetErrorString(status)};
  const bool on_one = cuda.transport == CudaTransport::Local || options.ranks != nullptr;
  if (!cuda.slots_on_host && on_one && bytes.value() > available)
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
