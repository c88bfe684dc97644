// The stand-in for NCCL between the threads of one process, or several processes of this host: transfers are host functions on
// the streams they are given, which meet their peers in shared memory. A send ends with its receive, unless FAKE_NCCL_BUFFER
// gives channels so many bytes.
//
// As the real one does: a communicator runs its transfers one after the other on a rank, whatever streams they are on;
// those of one group go on by themselves; sends and receives of two ranks match in order, and must agree in size; who is
// not aborted waits for ever, a rank whose peer has died too. By environment: FAKE_NCCL_BUFFER, FAKE_NCCL_LATENCY_US and
// FAKE_NCCL_BYTES_PER_US (length of a transfer: see stand_in.h), FAKE_NCCL_FAIL_AFTER (the n-th batch of a process ends in
// an asynchronous error), FAKE_NCCL_STALL_AFTER (it never ends).
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "kept.h"
#include "nccl_memory.h"
#include "nccl_world.h"
#include "stand_in.h"

using stave::fake::Moved;
using stave::fake::Step;
using stave::fake::World;

namespace {

std::uint64_t setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

struct Communicator {
  std::shared_ptr<World> world;
  int rank = 0;
  std::atomic<bool> aborted = false;
  std::atomic<ncclResult_t> error = ncclSuccess;
  // Parts of sums that this rank was in.
  std::uint64_t parts = 0;
  cudaStream_t last = nullptr;
  cudaEvent_t order = nullptr;
};

enum class Kind { Send, Receive, Sum };

struct Transfer {
  Kind kind = Kind::Send;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int peer = 0;
  Moved moved;
  std::size_t bytes() const;
};

struct Batch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Transfer> transfers;
  bool replayed = false;
};

struct Pending {
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  Transfer transfer;
};

std::mutex all_mutex;
std::map<ncclComm_t, std::shared_ptr<Communicator>>& communicators() {
  static auto* const all = new std::map<ncclComm_t, std::shared_ptr<Communicator>>;
  return *all;
}
std::atomic<std::uint64_t> batches = 0;
thread_local int depth = 0;
thread_local std::vector<Pending> pending;

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 4;
  }
}

std::size_t Transfer::bytes() const { return count * size_of(type); }

std::shared_ptr<Communicator> find(ncclComm_t handle) {
  const std::scoped_lock lock(all_mutex);
  const auto at = communicators().find(handle);
  return at == communicators().end() ? nullptr : at->second;
}

ncclResult_t wrong(const char* what) {
  cudaStandInMisuse("NCCL", what);
  return ncclInvalidUsage;
}

std::uint64_t length_ns(std::size_t bytes) {
  static const std::uint64_t latency = setting("FAKE_NCCL_LATENCY_US");
  static const std::uint64_t rate = setting("FAKE_NCCL_BYTES_PER_US");
  return 1000 * latency + (rate == 0 ? 0 : 1000 * bytes / rate);
}

// A transfer that has a length begins when its last rank has come to it, and ends for all at once.
std::uint64_t last(std::size_t bytes, std::uint64_t posted_ns) {
  std::uint64_t& clock = *cudaStandInClock();
  if (length_ns(bytes) == 0) return clock;
  clock = std::max(clock, posted_ns);
  cudaStandInLast(length_ns(bytes));
  return clock;
}

// True if the transfer could go on.
bool move(Communicator& mine, Transfer& transfer) {
  World& world = *mine.world;
  if (transfer.kind == Kind::Send) {
    if (!transfer.moved.began) transfer.moved.time_ns = *cudaStandInClock();
    const Step step = world.send(mine.rank, transfer.peer, transfer.from, transfer.bytes(), transfer.moved);
    if (transfer.moved.ended && length_ns(transfer.bytes()) != 0)
      *cudaStandInClock() = std::max(*cudaStandInClock(), transfer.moved.time_ns);
    return step == Step::Moved;
  }
  const Step step = world.receive(transfer.peer, mine.rank, transfer.to, transfer.bytes(), transfer.moved, last);
  if (step == Step::Mismatch && mine.error == ncclSuccess) {
    std::fprintf(stderr, "fake NCCL: rank %d sends %llu bytes, rank %d receives %zu\n", transfer.peer,
                 static_cast<unsigned long long>(transfer.moved.end), mine.rank, transfer.bytes());
    mine.error = ncclInvalidUsage;
  }
  return step == Step::Moved;
}

// Waits until `holds`; false if the communicator was aborted before.
template <class Holds>
bool wait_until(Communicator& mine, const Holds& holds) {
  World& world = *mine.world;
  while (!mine.aborted) {
    const std::uint32_t ticket = world.ticket();
    if (holds()) return true;
    world.wait(ticket);
  }
  return false;
}

// Every rank adds all ranks' values, in the order of the ranks.
template <class T>
void sum_up(Communicator& mine, const Transfer& transfer) {
  World& world = *mine.world;
  const auto every_rank = [&](auto holds) {
    return wait_until(mine, [&, holds] {
      for (int r = 0; r < world.ranks(); ++r)
        if (!holds(world.part(r))) return false;
      return true;
    });
  };
  const std::size_t most = World::kPart / sizeof(T);
  std::vector<T> total(most);
  for (std::size_t first = 0; first < transfer.count; first += most) {
    const std::size_t count = std::min(most, transfer.count - first);
    const std::uint64_t number = mine.parts++;
    World::Part& own = world.part(mine.rank);
    if (!every_rank([number](const World::Part& each) { return each.taken >= number; })) return;
    own.posted_ns = *cudaStandInClock();
    std::memcpy(own.data, transfer.from + first * sizeof(T), count * sizeof(T));
    own.put = number + 1;
    world.notify();
    if (!every_rank([number](const World::Part& each) { return each.put > number; })) return;
    if (first == 0) {
      std::uint64_t posted_ns = 0;
      for (int r = 0; r < world.ranks(); ++r) posted_ns = std::max(posted_ns, world.part(r).posted_ns.load());
      last(transfer.bytes(), posted_ns);
    }
    std::fill(total.begin(), total.end(), T());
    for (int r = 0; r < world.ranks(); ++r)
      for (std::size_t i = 0; i < count; ++i) total[i] += reinterpret_cast<const T*>(world.part(r).data)[i];
    own.taken = number + 1;
    world.notify();
    std::memcpy(transfer.to + first * sizeof(T), total.data(), count * sizeof(T));
  }
}

void run(Batch& batch) {
  static const std::uint64_t fail_after = setting("FAKE_NCCL_FAIL_AFTER");
  static const std::uint64_t stall_after = setting("FAKE_NCCL_STALL_AFTER");
  Communicator& mine = *batch.communicator;
  const std::uint64_t number = ++batches;
  if (number == fail_after) mine.error = ncclRemoteError;
  if (number == fail_after || number == stall_after) wait_until(mine, [] { return false; });
  for (Transfer& each : batch.transfers) {
    each.moved = {};
    if (each.kind == Kind::Sum && each.type == ncclFloat32) sum_up<float>(mine, each);
    if (each.kind == Kind::Sum && each.type == ncclUint64) sum_up<std::uint64_t>(mine, each);
    each.moved.ended = each.kind == Kind::Sum;
  }
  while (!mine.aborted) {
    const std::uint32_t ticket = mine.world->ticket();
    bool all = true;
    bool moves = false;
    // One after the other from one peer, and to one.
    std::set<std::pair<Kind, int>> ahead;
    for (Transfer& each : batch.transfers) {
      if (!each.moved.ended && ahead.emplace(each.kind, each.peer).second) moves = move(mine, each) || moves;
      all = all && each.moved.ended;
    }
    if (all) return;
    if (!moves) mine.world->wait(ticket);
  }
}

void run_batch(void* data) {
  auto* batch = static_cast<Batch*>(data);
  run(*batch);
  // One in a graph is run again.
  if (!batch->replayed) delete batch;
}

ncclResult_t launch(const std::shared_ptr<Communicator>& mine, cudaStream_t stream, std::vector<Transfer> transfers) {
  cudaStreamCaptureStatus captures = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &captures) != cudaSuccess) return ncclUnhandledCudaError;
  const bool replayed = captures != cudaStreamCaptureStatusNone;
  const bool changes = mine->last != nullptr && mine->last != stream;
  if (changes && replayed) return wrong("a communicator captured on several streams is not stood in for");
  if (changes && cudaStreamWaitEvent(stream, mine->order, 0) != cudaSuccess) return ncclUnhandledCudaError;
  auto batch = std::make_unique<Batch>(Batch{mine, std::move(transfers), replayed});
  if (cudaLaunchHostFunc(stream, run_batch, batch.get()) != cudaSuccess) return ncclUnhandledCudaError;
  if (replayed)
    stave::fake::keep(std::move(batch));
  else
    batch.release();
  mine->last = stream;
  if (!replayed && cudaEventRecord(mine->order, stream) != cudaSuccess) return ncclUnhandledCudaError;
  return ncclSuccess;
}

ncclResult_t flush() {
  std::vector<Pending> all;
  all.swap(pending);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].communicator == nullptr) continue;
    const ncclComm_t handle = all[i].communicator;
    std::vector<Transfer> transfers;
    for (std::size_t j = i; j < all.size(); ++j) {
      if (all[j].communicator != handle) continue;
      if (all[j].stream != all[i].stream) return wrong("a group of one communicator on several streams is not stood in for");
      transfers.push_back(all[j].transfer);
      all[j].communicator = nullptr;
    }
    if (const ncclResult_t result = launch(find(handle), all[i].stream, std::move(transfers)); result != ncclSuccess)
      return result;
  }
  return ncclSuccess;
}

ncclResult_t post(ncclComm_t handle, cudaStream_t stream, const Transfer& transfer) {
  const std::shared_ptr<Communicator> mine = find(handle);
  if (mine == nullptr) return wrong("a transfer on no communicator, or one that was destroyed");
  if (!mine->world->is_complete()) return wrong("a transfer before all ranks have joined its communicator");
  if (mine->error != ncclSuccess) return mine->error;
  if (transfer.kind != Kind::Sum && (transfer.peer < 0 || transfer.peer >= mine->world->ranks()))
    return wrong("a transfer to a rank that does not exist");
  if (transfer.kind == Kind::Sum && transfer.type != ncclFloat32 && transfer.type != ncclUint64)
    return wrong("a sum of a type that is not stood in for");
  if (transfer.kind != Kind::Sum &&
      !stave::fake::may_carry(handle, transfer.kind == Kind::Send ? transfer.from : transfer.to, transfer.bytes()))
    return ncclInvalidUsage;
  pending.push_back({handle, stream, transfer});
  return depth == 0 ? flush() : ncclSuccess;
}

ncclResult_t end_of(ncclComm_t handle, bool aborts) {
  const std::shared_ptr<Communicator> mine = find(handle);
  if (mine == nullptr) return wrong("a communicator destroyed twice");
  if (aborts) mine->aborted = true;
  mine->world->notify();
  stave::fake::forget(handle, aborts);
  const std::scoped_lock lock(all_mutex);
  communicators().erase(handle);
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<std::uint64_t> next = 1;
  static const std::uint64_t mine = std::uint64_t{std::random_device{}()} << 32 | static_cast<std::uint32_t>(::getpid());
  std::memset(id, 0, sizeof *id);
  const std::uint64_t number = next++;
  std::memcpy(id->internal, &mine, sizeof mine);
  std::memcpy(id->internal + sizeof mine, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  auto mine = std::make_shared<Communicator>();
  mine->world = World::open(std::string(id.internal, sizeof id.internal), ranks);
  if (mine->world == nullptr) return wrong("the ranks differ in their number, or there is no shared memory for them");
  if (cudaEventCreateWithFlags(&mine->order, cudaEventDisableTiming) != cudaSuccess) return ncclUnhandledCudaError;
  mine->rank = rank;
  if (!mine->world->join(rank)) return wrong("a rank joins twice, or is none");
  *handle = reinterpret_cast<ncclComm_t>(mine.get());
  {
    const std::scoped_lock lock(all_mutex);
    communicators()[*handle] = mine;
  }
  if (config != nullptr && config->blocking == 0) return ncclInProgress;
  wait_until(*mine, [&] { return mine->world->is_complete(); });
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const std::shared_ptr<Communicator> mine = find(handle);
  if (mine == nullptr) return wrong("the error of no communicator");
  *error = mine->error;
  if (*error == ncclSuccess && !mine->world->is_complete()) *error = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) { return end_of(handle, true); }
ncclResult_t ncclCommDestroy(ncclComm_t handle) { return end_of(handle, false); }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommRevoke(ncclComm_t handle, int) {
  const std::shared_ptr<Communicator> mine = find(handle);
  if (mine == nullptr) return wrong("no communicator to revoke");
  mine->aborted = true;
  mine->world->notify();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return wrong("an end of no group");
  return --depth == 0 ? flush() : ncclSuccess;
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      cudaStream_t stream) {
  Transfer transfer;
  transfer.kind = Kind::Send;
  transfer.from = static_cast<const std::byte*>(from);
  transfer.count = count;
  transfer.type = type;
  transfer.peer = peer;
  return post(handle, stream, transfer);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t handle, cudaStream_t stream) {
  Transfer transfer;
  transfer.kind = Kind::Receive;
  transfer.to = static_cast<std::byte*>(to);
  transfer.count = count;
  transfer.type = type;
  transfer.peer = peer;
  return post(handle, stream, transfer);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t handle,
                           cudaStream_t stream) {
  Transfer transfer;
  transfer.kind = Kind::Sum;
  transfer.from = static_cast<const std::byte*>(from);
  transfer.to = static_cast<std::byte*>(to);
  transfer.count = count;
  transfer.type = type;
  return post(handle, stream, transfer);
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInvalidUsage: return "invalid usage";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "an error of the stand-in for NCCL";
  }
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

}  // extern "C"
