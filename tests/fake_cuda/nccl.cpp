// The stand-in for NCCL between the threads of one process: transfers are host functions on the streams they are given,
// which meet their peers in a table. A send ends with its receive, unless FAKE_NCCL_BUFFER gives channels so many bytes.
//
// As the real one does: a communicator runs its transfers one after the other on a rank, whatever streams they are on;
// those of one group go on by themselves; sends and receives of two ranks match in order, and must agree in size; who is
// not aborted waits for ever. By environment: FAKE_NCCL_BUFFER, FAKE_NCCL_LATENCY_US and FAKE_NCCL_BYTES_PER_US (length of
// a transfer), FAKE_NCCL_FAIL_AFTER (the n-th batch of a process ends in an asynchronous error).
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

std::uint64_t setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

struct Sent {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  // Its own copy, if the channel had room.
  std::vector<std::byte> buffered;
  bool ended = false;
};

struct Sum {
  int here = 0;
  bool ended = false;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
};

// All ranks of a communicator.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  int ranks = 0;
  std::set<int> joined;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Sent>>> channels;
  std::map<std::pair<int, int>, std::size_t> buffered;
  std::map<std::uint64_t, Sum> sums;
};

struct Communicator {
  std::shared_ptr<World> world;
  int rank = 0;
  bool aborted = false;
  ncclResult_t error = ncclSuccess;
  std::uint64_t sums = 0;
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
  bool ended = false;
  std::shared_ptr<Sent> sent;
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
std::map<std::string, std::shared_ptr<World>>& worlds() {
  static auto* const all = new std::map<std::string, std::shared_ptr<World>>;
  return *all;
}
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
  std::fprintf(stderr, "fake NCCL: %s\n", what);
  return ncclInvalidUsage;
}

void last(std::size_t bytes) {
  static const std::uint64_t latency = setting("FAKE_NCCL_LATENCY_US");
  static const std::uint64_t rate = setting("FAKE_NCCL_BYTES_PER_US");
  const std::uint64_t us = latency + (rate == 0 ? 0 : bytes / rate);
  if (us != 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

void post_send(World& world, const Communicator& mine, Transfer& transfer) {
  static const std::uint64_t room = setting("FAKE_NCCL_BUFFER");
  const std::pair channel(mine.rank, transfer.peer);
  transfer.sent = std::make_shared<Sent>();
  Sent& sent = *transfer.sent;
  sent.data = transfer.from;
  sent.bytes = transfer.bytes();
  if (room != 0 && world.buffered[channel] + sent.bytes <= room) {
    world.buffered[channel] += sent.bytes;
    sent.buffered.assign(sent.data, sent.data + sent.bytes);
    sent.data = sent.buffered.data();
    transfer.ended = true;
  }
  world.channels[channel].push_back(transfer.sent);
  world.changed.notify_all();
}

// True if the transfer could go on. `lock` is let go while data moves.
bool receive(World& world, Communicator& mine, Transfer& transfer, std::unique_lock<std::mutex>& lock) {
  const std::pair channel(transfer.peer, mine.rank);
  std::deque<std::shared_ptr<Sent>>& queue = world.channels[channel];
  if (queue.empty()) return false;
  const std::shared_ptr<Sent> sent = queue.front();
  if (sent->bytes != transfer.bytes()) {
    std::fprintf(stderr, "fake NCCL: rank %d sends %zu bytes, rank %d receives %zu\n", transfer.peer, sent->bytes,
                 mine.rank, transfer.bytes());
    mine.error = ncclInvalidUsage;
    return false;
  }
  queue.pop_front();
  lock.unlock();
  last(sent->bytes);
  if (sent->bytes != 0) std::memcpy(transfer.to, sent->data, sent->bytes);
  lock.lock();
  if (!sent->buffered.empty()) world.buffered[channel] -= sent->bytes;
  sent->ended = true;
  transfer.ended = true;
  world.changed.notify_all();
  return true;
}

template <class T>
void add(const Sum& sum, std::size_t count) {
  std::vector<T> total(count);
  std::memcpy(total.data(), sum.from.front(), count * sizeof(T));
  for (std::size_t r = 1; r < sum.from.size(); ++r)
    for (std::size_t i = 0; i < count; ++i) total[i] += reinterpret_cast<const T*>(sum.from[r])[i];
  for (std::byte* to : sum.to) std::memcpy(to, total.data(), count * sizeof(T));
}

void sum_up(World& world, Communicator& mine, Transfer& transfer, std::unique_lock<std::mutex>& lock) {
  const std::uint64_t number = mine.sums++;
  Sum& sum = world.sums[number];
  sum.from.resize(static_cast<std::size_t>(world.ranks));
  sum.to.resize(static_cast<std::size_t>(world.ranks));
  sum.from[static_cast<std::size_t>(mine.rank)] = transfer.from;
  sum.to[static_cast<std::size_t>(mine.rank)] = transfer.to;
  if (++sum.here == world.ranks) {
    if (transfer.type == ncclFloat32) add<float>(sum, transfer.count);
    if (transfer.type == ncclUint64) add<std::uint64_t>(sum, transfer.count);
    sum.ended = true;
    world.changed.notify_all();
  }
  world.changed.wait(lock, [&] { return sum.ended || mine.aborted; });
  transfer.ended = true;
  if (--sum.here == 0) world.sums.erase(number);
}

void run(Batch& batch) {
  static const std::uint64_t fail_after = setting("FAKE_NCCL_FAIL_AFTER");
  Communicator& mine = *batch.communicator;
  World& world = *mine.world;
  std::unique_lock lock(world.mutex);
  if (++batches == fail_after) {
    mine.error = ncclRemoteError;
    world.changed.wait(lock, [&] { return mine.aborted; });
  }
  for (Transfer& each : batch.transfers) {
    each.ended = false;
    if (mine.aborted) return;
    if (each.kind == Kind::Send) post_send(world, mine, each);
    if (each.kind == Kind::Sum) sum_up(world, mine, each, lock);
  }
  while (!mine.aborted) {
    bool all = true;
    bool moved = false;
    std::set<int> behind;
    for (Transfer& each : batch.transfers) {
      if (each.kind == Kind::Send && each.sent->ended) each.ended = true;
      if (each.ended) continue;
      // One after the other from one peer.
      if (each.kind == Kind::Receive && behind.insert(each.peer).second) moved = receive(world, mine, each, lock) || moved;
      all = all && each.ended;
    }
    if (all) return;
    if (!moved) world.changed.wait(lock);
  }
}

void run_batch(void* data) {
  auto* batch = static_cast<Batch*>(data);
  run(*batch);
  // One in a graph is run again; it is kept for as long as the process lives.
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
  if (cudaLaunchHostFunc(stream, run_batch, batch.release()) != cudaSuccess) return ncclUnhandledCudaError;
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
  {
    const std::scoped_lock lock(mine->world->mutex);
    if (static_cast<int>(mine->world->joined.size()) != mine->world->ranks)
      return wrong("a transfer before all ranks have joined its communicator");
    if (mine->error != ncclSuccess) return mine->error;
    if (transfer.kind != Kind::Sum && (transfer.peer < 0 || transfer.peer >= mine->world->ranks))
      return wrong("a transfer to a rank that does not exist");
  }
  if (transfer.kind == Kind::Sum && transfer.type != ncclFloat32 && transfer.type != ncclUint64)
    return wrong("a sum of a type that is not stood in for");
  pending.push_back({handle, stream, transfer});
  return depth == 0 ? flush() : ncclSuccess;
}

ncclResult_t end_of(ncclComm_t handle, bool aborts) {
  const std::shared_ptr<Communicator> mine = find(handle);
  if (mine == nullptr) return wrong("a communicator destroyed twice");
  {
    const std::scoped_lock lock(mine->world->mutex);
    mine->aborted = mine->aborted || aborts;
    mine->world->changed.notify_all();
  }
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
  std::memset(id, 0, sizeof *id);
  const std::uint64_t number = next++;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  auto mine = std::make_shared<Communicator>();
  {
    const std::scoped_lock lock(all_mutex);
    std::shared_ptr<World>& world = worlds()[std::string(id.internal, sizeof id.internal)];
    if (world == nullptr) world = std::make_shared<World>();
    mine->world = world;
  }
  if (cudaEventCreateWithFlags(&mine->order, cudaEventDisableTiming) != cudaSuccess) return ncclUnhandledCudaError;
  mine->rank = rank;
  *handle = reinterpret_cast<ncclComm_t>(mine.get());
  std::unique_lock lock(mine->world->mutex);
  World& world = *mine->world;
  if (ranks < 1 || rank < 0 || rank >= ranks || (world.ranks != 0 && world.ranks != ranks) ||
      !world.joined.insert(rank).second)
    return wrong("a rank joins twice, or the ranks differ in their number");
  world.ranks = ranks;
  world.changed.notify_all();
  {
    const std::scoped_lock all(all_mutex);
    communicators()[*handle] = mine;
  }
  if (config != nullptr && config->blocking == 0) return ncclInProgress;
  world.changed.wait(lock, [&] { return static_cast<int>(world.joined.size()) == ranks; });
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const std::shared_ptr<Communicator> mine = find(handle);
  if (mine == nullptr) return wrong("the error of no communicator");
  const std::scoped_lock lock(mine->world->mutex);
  *error = mine->error;
  if (mine->error == ncclSuccess && static_cast<int>(mine->world->joined.size()) != mine->world->ranks)
    *error = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) { return end_of(handle, true); }
ncclResult_t ncclCommDestroy(ncclComm_t handle) { return end_of(handle, false); }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommRevoke(ncclComm_t handle, int) {
  const std::shared_ptr<Communicator> mine = find(handle);
  if (mine == nullptr) return wrong("no communicator to revoke");
  const std::scoped_lock lock(mine->world->mutex);
  mine->aborted = true;
  mine->world->changed.notify_all();
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
