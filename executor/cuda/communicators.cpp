#include "executor/cuda/communicators.h"

#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "executor/cuda/check.h"

// Of NCCL 2.19 and later. An older one at run time has no such functions, and their addresses are null.
#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#pragma weak ncclCommRegister
#pragma weak ncclCommDeregister

namespace stave {

namespace {

// Few, as each takes a multiprocessor from computing while a transfer waits.
constexpr int kMostBlocks = 4;
static_assert(sizeof(ncclUniqueId) == Communicators::kIdBytes);
constexpr std::size_t kWarmUpBytes = 4;
constexpr auto kPoll = std::chrono::microseconds(50);
constexpr auto kRevoke = std::chrono::seconds(2);
// The transport's, before its words.
const std::string kName = "nccl: ";

// Of NCCL 2.28.7 and later: lets go of all that is under way, so that it may be aborted.
void revoke(ncclComm_t communicator) {
  using Revoke = ncclResult_t (*)(ncclComm_t, int);
  static const auto call = reinterpret_cast<Revoke>(::dlsym(RTLD_DEFAULT, "ncclCommRevoke"));
  if (call == nullptr) return;
  ncclResult_t state = call(communicator, 0);
  const auto last = std::chrono::steady_clock::now() + kRevoke;
  while (state == ncclInProgress && std::chrono::steady_clock::now() < last) {
    std::this_thread::sleep_for(kPoll);
    if (ncclCommGetAsyncError(communicator, &state) != ncclSuccess) return;
  }
}

std::size_t count_messages(const Program& program, bool serial) { return serial ? 1 : program.edges.size(); }

class MessageMemory : public CudaMemory {
 public:
  explicit MessageMemory(cudaStream_t stream) : CudaMemory(stream, false) {}

  std::byte* allocate(std::size_t bytes) override {
    void* data = nullptr;
    if (ncclMemAlloc == nullptr || ncclMemFree == nullptr || ncclMemAlloc(&data, bytes) != ncclSuccess) {
      // What NCCL was refused is not an error of what comes next.
      cudaGetLastError();
      return CudaMemory::allocate(bytes);
    }
    blocks_.push_back(static_cast<std::byte*>(data));
    check(cudaMemset(data, 0, bytes), "cudaMemset");
    return blocks_.back();
  }

  void release(std::byte* data) override {
    if (std::erase(blocks_, data) == 0) return CudaMemory::release(data);
    ncclMemFree(data);
  }

  bool may_register(const std::byte* data) const override { return std::ranges::find(blocks_, data) != blocks_.end(); }

 private:
  std::vector<std::byte*> blocks_;
};

}  // namespace

std::unique_ptr<CudaMemory> make_message_memory(cudaStream_t stream) { return std::make_unique<MessageMemory>(stream); }

void Communicators::set_environment(bool serial, bool graph) {
  if (serial) setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  if (graph) setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 0);
}

std::size_t Communicators::count(const Program& program, const Groups& groups, bool serial) {
  return count_messages(program, serial) + groups.size();
}

std::vector<std::byte> Communicators::make_ids(std::size_t count) {
  std::vector<std::byte> result(count * sizeof(ncclUniqueId));
  for (std::size_t i = 0; i < count; ++i) {
    ncclUniqueId id;
    if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess)
      throw std::runtime_error(std::string("ncclGetUniqueId: ") + ncclGetErrorString(made));
    std::memcpy(result.data() + i * sizeof id, &id, sizeof id);
  }
  return result;
}

Communicators::Communicators(const Program& program, const Groups& groups, bool serial, DeviceId rank)
    : program_(program), serial_(serial), rank_(rank), first_group_(count_messages(program, serial)) {
  members_.resize(count(program, groups, serial));
  if (serial) {
    members_[0].rank = static_cast<int>(rank.value);
    members_[0].ranks = static_cast<int>(program.table.devices());
  }
  for (std::uint32_t e = 0; e < program.edges.size() && !serial; ++e) {
    members_[e].ranks = 2;
    if (program.edges[e].source == rank) members_[e].rank = 0;
    if (program.edges[e].target == rank) members_[e].rank = 1;
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const std::vector<DeviceId>& devices = groups[group];
    const auto at = std::ranges::find(devices, rank);
    Member& mine = of_group(group);
    mine.ranks = static_cast<int>(devices.size());
    if (devices.size() > 1 && at != devices.end()) mine.rank = static_cast<int>(at - devices.begin());
  }
}

Communicators::~Communicators() {
  for (const Member& each : members_) {
    if (each.communicator == nullptr) continue;
    if (each.registered != nullptr) ncclCommDeregister(each.communicator, each.registered);
    ncclCommDestroy(each.communicator);
  }
}

template <class Call>
std::string Communicators::finish(const Member& member, const char* what, const Call& call) {
  std::unique_lock lock(mutex_);
  const auto require_whole = [&] {
    if (aborted_) throw std::runtime_error(std::string(what) + ": aborted");
  };
  require_whole();
  ncclResult_t result = call(member.communicator);
  // One that does not block may still be at what it was asked before.
  while (result == ncclInProgress) {
    lock.unlock();
    std::this_thread::sleep_for(kPoll);
    lock.lock();
    require_whole();
    if (const ncclResult_t asked = ncclCommGetAsyncError(member.communicator, &result); asked != ncclSuccess)
      result = asked;
  }
  return result == ncclSuccess ? "" : kName + what + ": " + ncclGetErrorString(result);
}

template <class Call>
void Communicators::enqueue(const Member& member, const char* what, const Call& call) {
  if (const std::string error = finish(member, what, call); !error.empty()) throw std::runtime_error(error);
}

void Communicators::connect(const std::vector<std::byte>& ids, std::byte* scratch,
                            const std::function<cudaStream_t(EdgeId)>& stream,
                            const std::function<void(cudaStream_t)>& wait) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& mine = members_[i];
    if (mine.rank < 0) continue;
    ncclUniqueId id;
    std::memcpy(&id, ids.data() + i * sizeof id, sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.minCTAs = 1;
    config.maxCTAs = kMostBlocks;
    enqueue(mine, "ncclCommInitRankConfig", [&](ncclComm_t) {
      return ncclCommInitRankConfig(&mine.communicator, mine.ranks, id, mine.rank, &config);
    });
  }
  for (std::uint32_t e = 0; e < program_.edges.size(); ++e) {
    const Edge& edge = program_.edges[e];
    if (edge.source != rank_ && edge.target != rank_) continue;
    const cudaStream_t lane = stream(EdgeId(e));
    if (edge.source == rank_) {
      send(EdgeId(e), scratch, kWarmUpBytes, lane);
    } else {
      receive(EdgeId(e), scratch, kWarmUpBytes, lane);
    }
    wait(lane);
  }
  for (std::size_t group = 0; first_group_ + group < members_.size(); ++group) {
    if (of_group(group).rank < 0) continue;
    const cudaStream_t lane = stream(EdgeId());
    sum(group, {Element::Float32, scratch, kWarmUpBytes / sizeof(float)}, lane);
    wait(lane);
  }
}

void Communicators::register_memory(std::span<std::byte> memory) {
  if (memory.empty() || ncclCommRegister == nullptr || ncclCommDeregister == nullptr) return;
  for (std::size_t i = 0; i < first_group_; ++i) {
    Member& mine = members_[i];
    if (mine.rank < 0) continue;
    void* handle = nullptr;
    const std::string error = finish(mine, "ncclCommRegister", [&](ncclComm_t communicator) {
      return ncclCommRegister(communicator, memory.data(), memory.size(), &handle);
    });
    if (error.empty()) mine.registered = handle;
  }
  cudaGetLastError();
}

int Communicators::peer(EdgeId edge, bool source) const {
  const Edge& e = program_.edges[edge.value];
  if (!serial_) return source ? 0 : 1;
  return static_cast<int>((source ? e.source : e.target).value);
}

void Communicators::send(EdgeId edge, const std::byte* data, std::size_t bytes, cudaStream_t stream) {
  Member& mine = of(edge);
  enqueue(mine, "ncclSend", [&](ncclComm_t communicator) {
    return ncclSend(data, bytes, ncclInt8, peer(edge, false), communicator, stream);
  });
}

void Communicators::receive(EdgeId edge, std::byte* data, std::size_t bytes, cudaStream_t stream) {
  Member& mine = of(edge);
  enqueue(mine, "ncclRecv", [&](ncclComm_t communicator) {
    return ncclRecv(data, bytes, ncclInt8, peer(edge, true), communicator, stream);
  });
}

void Communicators::sum(std::size_t group, const GradientView& gradients, cudaStream_t stream) {
  Member& mine = of_group(group);
  if (mine.rank < 0 || gradients.count == 0) return;
  const ncclDataType_t type = gradients.element == Element::Float32 ? ncclFloat32 : ncclUint64;
  enqueue(mine, "ncclAllReduce", [&](ncclComm_t communicator) {
    return ncclAllReduce(gradients.data, gradients.data, gradients.count, type, ncclSum, communicator, stream);
  });
}

std::string Communicators::error() {
  const std::scoped_lock lock(mutex_);
  if (aborted_) return "";
  for (const Member& each : members_) {
    if (each.communicator == nullptr) continue;
    ncclResult_t state = ncclSuccess;
    ncclResult_t asked = ncclCommGetAsyncError(each.communicator, &state);
    if (asked == ncclSuccess) asked = state;
    if (asked != ncclSuccess && asked != ncclInProgress) return kName + ncclGetErrorString(asked);
  }
  return "";
}

void Communicators::abort_all() {
  const std::scoped_lock lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  std::vector<std::thread> threads;
  for (Member& each : members_)
    if (each.communicator != nullptr)
      threads.emplace_back([communicator = std::exchange(each.communicator, nullptr)] {
        revoke(communicator);
        ncclCommAbort(communicator);
      });
  for (std::thread& each : threads) each.join();
}

}  // namespace stave
