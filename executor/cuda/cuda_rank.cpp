#include "executor/cuda/cuda_rank.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <utility>

#include "executor/cuda/check.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/nvtx.h"

namespace stave {

namespace {

constexpr auto kPoll = std::chrono::microseconds(20);
constexpr Ticks kDrainNs = 5'000'000'000;
// How closely the clocks of host and GPU are to meet, and how often that is tried.
constexpr Ticks kCloseNs = 30'000;
constexpr int kClockTries = 5;
// What a lane may be at beside its items. Connecting is thought to take as long as this.
constexpr std::uint64_t kConnects = UINT64_MAX;
constexpr std::uint64_t kGraph = UINT64_MAX - 1;
constexpr Ticks kConnectNs = 6'000'000'000;
// What a message without data carries, so that it too ends after it has begun.
constexpr std::size_t kLeastBytes = 4;

void sleep_for(void* ns) {
  const Ticks all = *static_cast<const Ticks*>(ns);
  const timespec time{all / 1'000'000'000, all % 1'000'000'000};
  nanosleep(&time, nullptr);
}

Ticks elapsed(cudaEvent_t from, cudaEvent_t to) {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
  return std::llround(static_cast<double>(ms) * 1e6);
}

void copy_gradients(const GradientView& to, const GradientView& from, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.data, from.data, bytes_of(from), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
}

bool is_done(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

}  // namespace

Communicators::Groups sum_groups(const Partition& model, const std::vector<std::vector<StageId>>& tied) {
  Communicators::Groups result;
  for (const std::vector<DeviceId>& devices : model.devices) result.push_back(devices);
  for (const std::vector<StageId>& stages : tied) {
    std::vector<DeviceId>& devices = result.emplace_back();
    for (StageId s : stages)
      for (DeviceId d : model.devices[s])
        if (std::ranges::find(devices, d) == devices.end()) devices.push_back(d);
  }
  return result;
}

CudaRank::CudaRank(const Program& program, const Plan& plan, Workload& workload, const CudaLanes& lanes,
                   const RunOptions& options, const CudaOptions& cuda, DeviceId rank, LanePlan lane_plan,
                   const std::vector<std::size_t>& payload_bytes, const std::atomic<bool>& stopped)
    : program_(program),
      plan_(plan),
      workload_(workload),
      options_(options),
      cuda_(cuda),
      rank_(rank),
      stopped_(stopped),
      lane_plan_(std::move(lane_plan)),
      tied_(workload.tied()),
      gpu_(lanes[rank.valid() ? rank : DeviceId(0)].gpu),
      devices_(program.table.devices()) {
  use_gpu();
  by_lane_.resize(lane_plan_.lanes.size());
  for (const LanePlan::Lane& lane : lane_plan_.lanes) {
    const bool computes = lane.device.valid() && lane.computes;
    owned_.push_back(computes ? nullptr : make_stream(lane.device.valid()));
    streams_.push_back(computes ? lanes[lane.device].stream : owned_.back().get());
    ends_.push_back(make_event(false));
    if (!computes) continue;
    const bool may_register = cuda.transport == CudaTransport::Nccl && !cuda.slots_on_host;
    memories_.push_back(may_register ? make_message_memory(streams_.back())
                                     : std::make_unique<CudaMemory>(streams_.back(), cuda.slots_on_host));
    devices_[lane.device.value] =
        std::make_unique<Device>(program, plan, workload, lane.device, payload_bytes, *memories_.back());
  }
  scratch_memory_ = std::make_unique<CudaMemory>(streams_.front(), cuda.slots_on_host);
  scratch_ = std::make_unique<MemoryBlock>(*scratch_memory_, kLeastBytes);
  for (std::uint32_t i = 0; i < lane_plan_.events; ++i) events_.push_back(make_event(false));
  recorded_by_.assign(lane_plan_.events, 0);
  begun_ = make_event(true);
  spare_ = make_event(true);
  done_ = make_event(true);
  for (std::uint32_t i = 0; i < lane_plan_.items.size(); ++i) {
    const LaneItem& item = lane_plan_.items[i];
    by_lane_[item.lane].push_back(i);
    if (item.event != LaneItem::kNone) recorded_by_[item.event] = i;
    names_.push_back(program.is_message(item.node) ? "PP:" + describe(program, item.node)
                                                   : nvtx_name(program.table.ops, program.table.entries[item.node.value]));
    if (!cuda.times) continue;
    starts_.push_back(make_event(true));
    stops_.push_back(make_event(true));
  }
  cursor_.assign(by_lane_.size(), 0);
  if (options.measures_norm) {
    parts_ = DeviceBytes(cuda::kSquareParts * sizeof(double));
    squares_ = DeviceBytes(2 * std::size_t(plan.model.stages) * sizeof(double));
  }
  alive_ = now_ns();
  make_transfers();
  if (cuda.transport != CudaTransport::Nccl) return;
  Communicators::set_environment(cuda.serial, cuda.graph);
  communicators_ = std::make_unique<Communicators>(program, sum_groups(plan.model, tied_), cuda.serial, rank);
}

void CudaRank::use_gpu() const { check(cudaSetDevice(gpu_), "cudaSetDevice"); }

void CudaRank::make_transfers() {
  transfers_.resize(lane_plan_.items.size());
  sleeps_.assign(lane_plan_.items.size(), 0);
  for (std::uint32_t i = 0; i < lane_plan_.items.size(); ++i) {
    const LaneItem& item = lane_plan_.items[i];
    // What is not computed lasts its cost.
    const bool waits = !workload_.computes() || (!program_.is_message(item.node) && plan_.work[item.node.value] == Work::Wait);
    if (waits && !options_.cost_ns.empty()) sleeps_[i] = options_.cost_ns[item.node.value];
    if (!program_.is_message(item.node)) continue;
    const Message& m = program_.message(item.node);
    const Edge& edge = program_.edges[m.edge.value];
    Transfer& transfer = transfers_[i];
    Device* source = devices_[edge.source.value].get();
    Device* target = devices_[edge.target.value].get();
    transfer.from = transfer.to = scratch_->data();
    transfer.bytes = kLeastBytes;
    transfer.payload = m.payload;
    transfer.out_slot = m.out_slot;
    transfer.in_slot = m.in_slot;
    if (m.in_slot == UINT32_MAX) continue;
    const OpId maker = program_.table.entries[m.producer];
    transfer.due = (source != nullptr ? source : target)->envelope(0, maker, m.payload);
    if (source != nullptr) transfer.source = &source->buffers();
    if (target != nullptr) transfer.target = &target->buffers();
    if (transfer.due.bytes == 0) continue;
    transfer.bytes = transfer.due.bytes;
    if (source != nullptr) transfer.from = source->buffers().slot(m.payload, m.out_slot);
    if (target != nullptr) transfer.to = target->buffers().slot(m.payload, m.in_slot);
  }
}

void CudaRank::connect(const std::vector<std::byte>& ids) {
  use_gpu();
  if (communicators_ == nullptr) return;
  if (watchdog_ != nullptr) watchdog_->begin(0, kConnects, kConnectNs);
  std::vector<cudaStream_t> of_edge(program_.edges.size(), nullptr);
  for (const LaneItem& item : lane_plan_.items)
    if (program_.is_message(item.node)) of_edge[program_.message(item.node).edge.value] = streams_[item.lane];
  communicators_->connect(
      ids, scratch_->data(),
      // An edge without a message needs no lane of its own.
      [&](EdgeId e) { return !e.valid() || of_edge[e.value] == nullptr ? streams_.front() : of_edge[e.value]; },
      [&](cudaStream_t stream) {
        check(cudaEventRecord(done_.get(), stream), "cudaEventRecord");
        wait_for(done_.get());
      });
  if (watchdog_ != nullptr) watchdog_->end(0);
  const std::span<std::byte> slots = device(rank_).buffers().slots();
  if (memories_.front()->may_register(slots.data())) communicators_->register_memory(slots);
}

void CudaRank::begin_step(std::uint64_t step) {
  step_.store(step, std::memory_order_relaxed);
  for (const std::unique_ptr<Device>& each : devices_)
    if (each != nullptr) each->begin_step(step);
  wait_for_lanes();
  meet_clocks();
  issued_.store(0, std::memory_order_relaxed);
  cursor_.assign(by_lane_.size(), 0);
}

// An idle GPU comes to an event at once; the host may be late to see it. The sooner it does, the surer are both of when
// it was.
void CudaRank::meet_clocks() {
  Ticks least = kMaxTicks;
  for (int i = 0; i < kClockTries && least > kCloseNs; ++i) {
    const Ticks before = now_ns();
    check(cudaEventRecord(spare_.get(), streams_.front()), "cudaEventRecord");
    wait_for(spare_.get(), true);
    const Ticks after = now_ns();
    if (after - before >= least) continue;
    least = after - before;
    origin_ns_ = before;
    std::swap(begun_, spare_);
  }
}

void CudaRank::run_table(Ticks predicted_ns) {
  predicted_ns_ = predicted_ns;
  measured_ = false;
  // What was run once is loaded and connected; only then it is captured.
  if (cuda_.graph && warm_) {
    if (graph_ == nullptr) capture();
    if (watchdog_ != nullptr) watchdog_->begin(0, kGraph, predicted_ns);
    alive_.store(now_ns(), std::memory_order_relaxed);
    check(cudaGraphLaunch(graph_.get(), streams_.front()), "cudaGraphLaunch");
  } else {
    for (std::size_t lane = 0; lane < by_lane_.size(); ++lane) look_at(lane);
    issue(false);
    join();
    measured_ = cuda_.times;
  }
  check(cudaEventRecord(done_.get(), streams_.front()), "cudaEventRecord");
  wait_for(done_.get());
  if (watchdog_ != nullptr)
    for (std::uint32_t lane = 0; lane < lanes(); ++lane) watchdog_->end(lane);
  table_end_ns_ = origin_ns_ + elapsed(begun_.get(), done_.get());
  warm_ = true;
}

// From and to the first lane, so that one stands for all.
void CudaRank::fork() {
  check(cudaEventRecord(ends_.front().get(), streams_.front()), "cudaEventRecord");
  for (std::size_t lane = 1; lane < streams_.size(); ++lane)
    check(cudaStreamWaitEvent(streams_[lane], ends_.front().get(), 0), "cudaStreamWaitEvent");
}

void CudaRank::join() {
  for (std::size_t lane = 1; lane < streams_.size(); ++lane) {
    check(cudaEventRecord(ends_[lane].get(), streams_[lane]), "cudaEventRecord");
    check(cudaStreamWaitEvent(streams_.front(), ends_[lane].get(), 0), "cudaStreamWaitEvent");
  }
}

void CudaRank::capture() {
  check(cudaStreamBeginCapture(streams_.front(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    fork();
    issue(true);
    join();
  } catch (...) {
    cudaStreamEndCapture(streams_.front(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(streams_.front(), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "cudaGraphInstantiate");
  graph_.reset(made);
}

void CudaRank::issue(bool captures) {
  const bool times = cuda_.times && !captures;
  for (std::uint32_t i = 0; i < lane_plan_.items.size(); ++i) {
    const LaneItem& item = lane_plan_.items[i];
    const cudaStream_t stream = streams_[item.lane];
    for (std::uint32_t w = item.first_wait; w < item.end_wait; ++w)
      check(cudaStreamWaitEvent(stream, events_[lane_plan_.waits[w]].get(), 0), "cudaStreamWaitEvent");
    if (times) check(cudaEventRecord(starts_[i].get(), stream), "cudaEventRecord");
    run_item(item, i);
    if (times) check(cudaEventRecord(stops_[i].get(), stream), "cudaEventRecord");
    if (item.event != LaneItem::kNone) check(cudaEventRecord(events_[item.event].get(), stream), "cudaEventRecord");
    if (captures) continue;
    issued_.store(i + 1, std::memory_order_release);
    alive_.store(now_ns(), std::memory_order_relaxed);
  }
}

void CudaRank::run_item(const LaneItem& item, std::uint32_t index) {
  const NvtxRange range(names_[index]);
  if (sleeps_[index] > 0)
    check(cudaLaunchHostFunc(streams_[item.lane], sleep_for, &sleeps_[index]), "cudaLaunchHostFunc");
  if (program_.is_message(item.node)) {
    carry(item, transfers_[index]);
    return;
  }
  const std::uint32_t position = item.node.value;
  if (const std::string error = device(plan_.device[position]).run(position, step_); !error.empty())
    throw std::runtime_error(text(item.node) + ": " + error);
  if (item.action == Action::Sum)
    sum(StageId(program_.table.ops.stage(program_.table.entries[position])), streams_[item.lane]);
}

void CudaRank::carry(const LaneItem& item, Transfer& transfer) {
  transfer.due.step = step_;
  if (transfer.source != nullptr) {
    const Envelope& leaving = transfer.source->envelope(transfer.payload, transfer.out_slot);
    const std::string error = check_envelope(program_, leaving, transfer.due, transfer.out_slot);
    if (!error.empty()) throw std::runtime_error(text(item.node) + ": " + error);
  }
  const cudaStream_t stream = streams_[item.lane];
  const EdgeId edge = program_.message(item.node).edge;
  switch (item.action) {
    case Action::Copy:
      if (transfer.due.bytes != 0)
        check(cudaMemcpyAsync(transfer.to, transfer.from, transfer.bytes, cudaMemcpyDefault, stream),
              "cudaMemcpyAsync");
      break;
    case Action::Send:
      communicators_->send(edge, transfer.from, transfer.bytes, stream);
      break;
    case Action::Receive:
      communicators_->receive(edge, transfer.to, transfer.bytes, stream);
      break;
    case Action::Op:
    case Action::Sum:
      break;
  }
  if (transfer.target != nullptr) transfer.target->envelope(transfer.payload, transfer.in_slot) = transfer.due;
}

void CudaRank::sum(StageId s, cudaStream_t stream) {
  const std::vector<DeviceId>& mine = plan_.model.devices[s];
  if (communicators_ == nullptr) {
    if (cuda_.slots_on_host) return cuda_.enqueue_sum(s, stream);
    const GradientView sum = workload_.stage(s)->gradients();
    for (std::uint32_t r = 1; r < mine.size(); ++r)
      cuda::add(static_cast<float*>(sum.data), static_cast<const float*>(workload_.stage(s, r)->gradients().data),
                sum.count, stream);
    for (std::uint32_t r = 1; r < mine.size(); ++r) copy_gradients(workload_.stage(s, r)->gradients(), sum, stream);
    return;
  }
  const auto at = std::ranges::find(mine, rank_);
  if (at == mine.end()) return;
  Stage* stage = workload_.stage(s, static_cast<std::uint32_t>(at - mine.begin()));
  communicators_->sum(s.value, stage->gradients(), stream);
}

void CudaRank::sum_replicas() {
  for (std::uint32_t s = 0; s < plan_.model.stages; ++s) {
    if (plan_.model.devices[StageId(s)].size() < 2 || plan_.reduces_itself[s] != 0) continue;
    sum(StageId(s), streams_.front());
  }
  wait_for_lanes();
}

void CudaRank::sum_tied() {
  const cudaStream_t stream = streams_.front();
  for (std::size_t group = 0; group < tied_.size(); ++group) {
    // Of all that are here the first has the sum. The replicas of a stage are alike: one of them counts.
    GradientView sum;
    bool counts = false;
    std::vector<GradientView> others;
    for (StageId s : tied_[group]) {
      const std::vector<DeviceId>& devices = plan_.model.devices[s];
      for (std::uint32_t r = 0; r < devices.size(); ++r) {
        if (devices_[devices[r].value] == nullptr) continue;
        const GradientView mine = workload_.stage(s, r)->tied_gradients();
        if (sum.data == nullptr) {
          sum = mine;
          counts = r == 0;
          continue;
        }
        others.push_back(mine);
        if (r != 0) continue;
        if (counts)
          cuda::add(static_cast<float*>(sum.data), static_cast<const float*>(mine.data), sum.count, stream);
        else
          copy_gradients(sum, mine, stream);
        counts = true;
      }
    }
    if (sum.data == nullptr) continue;
    if (!counts) check(cudaMemsetAsync(sum.data, 0, bytes_of(sum), stream), "cudaMemsetAsync");
    if (communicators_ != nullptr) communicators_->sum(plan_.model.stages + group, sum, stream);
    for (const GradientView& each : others) copy_gradients(each, sum, stream);
  }
  wait_for_lanes();
}

void CudaRank::each_replica(const std::function<void(StageId, std::uint32_t)>& visit) const {
  for (std::uint32_t s = 0; s < plan_.model.stages; ++s) {
    const std::vector<DeviceId>& devices = plan_.model.devices[StageId(s)];
    for (std::uint32_t r = 0; r < devices.size(); ++r)
      if (devices_[devices[r].value] != nullptr) visit(StageId(s), r);
  }
}

void CudaRank::add_squares(std::vector<double>& by_stage) {
  const cudaStream_t stream = streams_.front();
  // Of each stage what is before, and what is behind, the tied gradients that count at another.
  std::vector<double> mine(2 * by_stage.size(), 0);
  auto* const sums = reinterpret_cast<double*>(squares_.data());
  const auto square = [&](const float* data, std::size_t count, std::size_t at) {
    if (count != 0) cuda::sum_of_squares(data, count, reinterpret_cast<double*>(parts_.data()), sums + at, stream);
  };
  check(cudaMemsetAsync(sums, 0, squares_.size(), stream), "cudaMemsetAsync");
  each_replica([&](StageId s, std::uint32_t replica) {
    if (replica != 0) return;
    const GradientView all = workload_.stage(s)->gradients();
    const auto* const data = static_cast<const float*>(all.data);
    const bool counts_elsewhere = std::ranges::any_of(tied_, [&](const std::vector<StageId>& group) {
      return group.front() != s && std::ranges::find(group, s) != group.end();
    });
    if (!counts_elsewhere) return square(data, all.count, 2 * std::size_t(s.value));
    const GradientView tied = workload_.stage(s)->tied_gradients();
    const auto before = static_cast<std::size_t>(static_cast<const float*>(tied.data) - data);
    square(data, before, 2 * std::size_t(s.value));
    square(data + before + tied.count, all.count - before - tied.count, 2 * std::size_t(s.value) + 1);
  });
  check(cudaMemcpyAsync(mine.data(), sums, squares_.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  wait_for_lanes();
  each_replica([&](StageId s, std::uint32_t replica) {
    if (replica == 0) by_stage[s.value] = mine[2 * std::size_t(s.value)] + mine[2 * std::size_t(s.value) + 1];
  });
}

void CudaRank::scale_gradients(float factor) {
  each_replica([&](StageId s, std::uint32_t replica) {
    const GradientView all = workload_.stage(s, replica)->gradients();
    cuda::scale(static_cast<float*>(all.data), all.count, factor, streams_.front());
  });
  wait_for_lanes();
}

void CudaRank::end_step() {
  for (const std::unique_ptr<Device>& each : devices_)
    if (each != nullptr) each->end_step();
  wait_for_lanes();
}

std::vector<CudaRank::Times> CudaRank::times() const {
  std::vector<Times> result;
  for (std::uint32_t i = 0; i < lane_plan_.items.size(); ++i) {
    const LaneItem& item = lane_plan_.items[i];
    // Sums that run as one end together.
    const bool is_message = program_.is_message(item.node);
    const std::uint32_t last = is_message ? i : lane_plan_.item_of[item.node.value];
    result.push_back({item.node, item.action, origin_ns_ + elapsed(begun_.get(), starts_[last].get()),
                      origin_ns_ + elapsed(begun_.get(), stops_[last].get())});
  }
  return result;
}

bool CudaRank::sees_progress() {
  if (stops_.empty()) return false;
  const std::uint32_t issued = issued_.load(std::memory_order_relaxed);
  bool moved = false;
  for (std::size_t lane = 0; lane < by_lane_.size(); ++lane) {
    const std::vector<std::uint32_t>& mine = by_lane_[lane];
    const std::uint32_t before = cursor_[lane];
    while (cursor_[lane] < mine.size() && mine[cursor_[lane]] < issued && is_done(stops_[mine[cursor_[lane]]].get()))
      ++cursor_[lane];
    if (cursor_[lane] == before) continue;
    moved = true;
    look_at(lane);
  }
  return moved;
}

void CudaRank::look_at(std::size_t lane) {
  if (watchdog_ == nullptr) return;
  const auto number = static_cast<std::uint32_t>(lane);
  const std::uint32_t at = cursor_[lane];
  if (at < by_lane_[lane].size()) {
    watchdog_->begin(number, by_lane_[lane][at], predicted_ns_);
  } else {
    watchdog_->end(number);
  }
}

bool CudaRank::has_ended(std::uint32_t item) const {
  return item < issued_.load(std::memory_order_acquire) && cudaEventQuery(stops_[item].get()) == cudaSuccess;
}

std::string CudaRank::text(NodeId node) const {
  return describe(program_, node) + ", step " + std::to_string(step_.load(std::memory_order_relaxed) + 1);
}

Position CudaRank::position(std::uint64_t what) const {
  if (what == kConnects) return {"the connecting to the other ranks by NCCL"};
  if (what == kGraph) return {"the graph of step " + std::to_string(step_.load(std::memory_order_relaxed) + 1)};
  const LaneItem& item = lane_plan_.items[what];
  const auto edge = [&](const LaneItem& each) { return program_.edges[program_.message(each.node).edge.value]; };
  if (item.action == Action::Send) return {"the send of the " + text(item.node), edge(item).target.value};
  if (item.action == Action::Receive) return {"the receive of the " + text(item.node), edge(item).source.value};
  for (std::uint32_t w = item.first_wait; w < item.end_wait; ++w) {
    const std::uint32_t number = recorded_by_[lane_plan_.waits[w]];
    const LaneItem& before = lane_plan_.items[number];
    if ((before.action != Action::Receive && before.action != Action::Send) || has_ended(number)) continue;
    const Edge& way = edge(before);
    return {"the wait before " + text(item.node), (before.action == Action::Receive ? way.source : way.target).value};
  }
  return {text(item.node)};
}

void CudaRank::wait_for(cudaEvent_t event, bool at_once) {
  for (alive_.store(now_ns(), std::memory_order_relaxed); !is_done(event);) {
    if (stopped_.load(std::memory_order_relaxed)) throw std::runtime_error("stopped");
    if (sees_progress()) alive_.store(now_ns(), std::memory_order_relaxed);
    if (at_once) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPoll);
    }
  }
  alive_.store(now_ns(), std::memory_order_relaxed);
}

void CudaRank::wait_for_lanes() {
  for (std::size_t lane = 0; lane < streams_.size(); ++lane) {
    check(cudaEventRecord(ends_[lane].get(), streams_[lane]), "cudaEventRecord");
    wait_for(ends_[lane].get());
  }
}

std::string CudaRank::positions() const {
  std::string text;
  const std::uint32_t issued = issued_.load(std::memory_order_acquire);
  if (stops_.empty() || graph_ != nullptr) return "  a step's graph or its ops, whose times are not taken\n";
  for (const std::vector<std::uint32_t>& lane : by_lane_) {
    for (std::uint32_t i : lane) {
      if (i < issued && cudaEventQuery(stops_[i].get()) == cudaSuccess) continue;
      const char* action = lane_plan_.items[i].action == Action::Send      ? "the send of "
                           : lane_plan_.items[i].action == Action::Receive ? "the receive of "
                                                                           : "";
      text += "  " + (rank_.valid() ? "device " + std::to_string(rank_.value) + ": " : std::string()) + action +
              describe(program_, lane_plan_.items[i].node) + (i < issued ? "\n" : ", not yet enqueued\n");
      break;
    }
  }
  return text;
}

void CudaRank::abort_all() {
  if (communicators_ != nullptr) communicators_->abort_all();
}

bool CudaRank::drain() {
  const Ticks last = now_ns() + kDrainNs;
  for (std::size_t lane = 0; lane < streams_.size(); ++lane) {
    cudaError_t status = cudaErrorNotReady;
    while ((status = cudaStreamQuery(streams_[lane])) == cudaErrorNotReady && now_ns() < last)
      std::this_thread::sleep_for(kPoll);
    if (status == cudaErrorNotReady) return false;
  }
  return true;
}

}  // namespace stave
