#include "runtime.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <unordered_map>
#include <utility>

namespace stave::fake {

namespace {

constexpr std::uint64_t kMostQueues = 32;
constexpr int kMisused = 70;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

struct Device {
  std::vector<std::unique_ptr<Queue>> queues;
  std::size_t streams = 0;
};

// Lives until the process ends, as the threads of its queues do.
struct Runtime {
  std::mutex mutex;
  std::vector<Device> devices = std::vector<Device>(setting("FAKE_CUDA_DEVICES", 1));
  std::unordered_map<const void*, std::shared_ptr<Stream>> streams;
  std::unordered_map<const void*, std::shared_ptr<Event>> events;
  std::unordered_map<const void*, std::shared_ptr<Graph>> graphs;
  std::uint64_t enqueued = 0;
  std::atomic<std::uint64_t> waits = 0;
  const std::uint64_t drop_wait = setting("FAKE_CUDA_DROP_WAIT", 0);
  const std::uint64_t fail_after = setting("FAKE_CUDA_FAIL_AFTER", 0);
  const std::uint64_t jitter_us = setting("FAKE_CUDA_JITTER_US", 0);
};

Runtime& runtime() {
  static Runtime* const all = new Runtime;
  return *all;
}

std::atomic<bool> is_misused = false;

// After everything else of the process, those of the other stand-ins too, which are loaded later.
struct AtEnd {
  ~AtEnd() {
    if (!is_misused || std::getenv("FAKE_CUDA_STRICT") == nullptr) return;
    std::fflush(nullptr);
    std::_Exit(kMisused);
  }
} const at_end;

thread_local int device = 0;
thread_local std::uint64_t queue_clock_ns = 0;
thread_local cudaError_t last_error = cudaSuccess;

template <class T>
std::shared_ptr<T> find(const std::unordered_map<const void*, std::shared_ptr<T>>& all, const void* handle) {
  const std::scoped_lock lock(runtime().mutex);
  const auto at = all.find(handle);
  return at == all.end() || at->second->destroyed ? nullptr : at->second;
}

void end_of(Stream& stream) {
  const std::scoped_lock lock(stream.mutex);
  ++stream.ended;
  stream.changed.notify_all();
}

void put(const std::shared_ptr<Stream>& stream, Task task) {
  if (stream->capture != nullptr) {
    Capture& capture = *stream->capture;
    capture.graph->tasks.push_back(std::move(task));
    ++capture.streams[stream.get()][stream.get()];
    return;
  }
  {
    const std::scoped_lock lock(stream->mutex);
    ++stream->issued;
  }
  stream->queue->push([stream, task = std::move(task)] {
    if (const std::uint64_t jitter = runtime().jitter_us; jitter != 0) {
      thread_local std::minstd_rand random(std::random_device{}());
      std::this_thread::sleep_for(std::chrono::microseconds(random() % (jitter + 1)));
    }
    task();
    end_of(*stream);
  });
}

Task recording(const std::shared_ptr<Event>& event, bool counts) {
  return [event, counts, ticket = event->issued] {
    const std::scoped_lock lock(event->mutex);
    event->ended = counts ? event->ended + 1 : ticket;
    event->time_ns = queue_clock_ns;
    event->changed.notify_all();
  };
}

bool forbidden_in_capture(const char* what) {
  if (!thread_captures()) return false;
  misuse(cudaErrorStreamCaptureUnsupported, std::string(what) + " inside a capture");
  return true;
}

}  // namespace

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Queue::Queue() { std::thread([this] { work(); }).detach(); }

void Queue::push(Task task) {
  const std::scoped_lock lock(mutex_);
  items_.push_back({std::move(task), now_ns()});
  changed_.notify_one();
}

void Queue::work() {
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !items_.empty(); });
      item = std::move(items_.front());
      items_.pop_front();
    }
    queue_clock_ns = std::max(queue_clock_ns, item.enqueued_ns);
    item.task();
  }
}

cudaError_t misuse(cudaError_t error, const std::string& what) {
  cudaStandInMisuse("CUDA", what.c_str());
  set_last_error(error);
  return error;
}

std::shared_ptr<Stream> stream_of(cudaStream_t handle) { return find(runtime().streams, handle); }
std::shared_ptr<Event> event_of(cudaEvent_t handle) { return find(runtime().events, handle); }

cudaError_t enqueue(cudaStream_t handle, const char* what, Task task) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  if (stream == nullptr)
    return misuse(cudaErrorInvalidResourceHandle, std::string(what) + " on no stream, or one that was destroyed");
  {
    const std::scoped_lock lock(runtime().mutex);
    ++runtime().enqueued;
    if (runtime().enqueued == runtime().fail_after) return set_last_error(cudaErrorLaunchFailure), cudaErrorLaunchFailure;
  }
  put(stream, [task = std::move(task)] {
    const std::uint64_t begun_ns = queue_clock_ns;
    task();
    if (queue_clock_ns == begun_ns) queue_clock_ns = std::max(begun_ns, now_ns());
  });
  return cudaSuccess;
}

bool& thread_captures() {
  thread_local bool captures = false;
  return captures;
}

int current_device() { return device; }
void set_last_error(cudaError_t error) { last_error = error; }

}  // namespace stave::fake

using namespace stave::fake;

extern "C" {

std::uint64_t* cudaStandInClock() { return &queue_clock_ns; }

void cudaStandInLast(std::uint64_t ns) {
  if (ns == 0) return;
  queue_clock_ns += ns;
  const timespec until{static_cast<time_t>(queue_clock_ns / 1'000'000'000), static_cast<long>(queue_clock_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void cudaStandInMisuse(const char* library, const char* what) {
  std::fprintf(stderr, "fake %s: misuse: %s\n", library, what);
  is_misused = true;
}

std::uint64_t cudaStandInKernelNs() {
  static const std::uint64_t ns = 1000 * setting("FAKE_CUDA_KERNEL_US", 0);
  return ns;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(runtime().devices.size());
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaSetDevice(int which) {
  if (which < 0 || static_cast<std::size_t>(which) >= runtime().devices.size())
    return set_last_error(cudaErrorInvalidDevice), cudaErrorInvalidDevice;
  device = which;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* which) {
  *which = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* to, int length, int which) {
  if (which < 0 || static_cast<std::size_t>(which) >= runtime().devices.size()) return cudaErrorInvalidDevice;
  // As visible devices are counted anew, so do their names begin elsewhere.
  std::snprintf(to, static_cast<std::size_t>(length), "0000:%02x:00.0",
                which + static_cast<int>(setting("FAKE_CUDA_FIRST_DEVICE", 0)));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation: return "dependency created on uncaptured work in another stream";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    default: return "an error of the stand-in for CUDA";
  }
}
const char* cudaGetErrorName(cudaError_t error) { return cudaGetErrorString(error); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned, int) {
  Runtime& all = runtime();
  const std::scoped_lock lock(all.mutex);
  Device& mine = all.devices[static_cast<std::size_t>(device)];
  const std::uint64_t most = std::clamp<std::uint64_t>(setting("CUDA_DEVICE_MAX_CONNECTIONS", 8), 1, kMostQueues);
  auto stream = std::make_shared<Stream>();
  const std::size_t which = mine.streams++ % most;
  if (which >= mine.queues.size()) mine.queues.push_back(std::make_unique<Queue>());
  stream->queue = mine.queues[which].get();
  stream->device = device;
  *handle = reinterpret_cast<cudaStream_t>(stream.get());
  all.streams[*handle] = std::move(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  if (stream == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a stream destroyed twice");
  const std::scoped_lock lock(runtime().mutex);
  stream->destroyed = true;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  if (stream == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a query of no stream");
  if (forbidden_in_capture("a query of a stream")) return cudaErrorStreamCaptureUnsupported;
  const std::scoped_lock lock(stream->mutex);
  return stream->ended == stream->issued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  if (stream == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a sync with no stream");
  if (forbidden_in_capture("a sync")) return cudaErrorStreamCaptureUnsupported;
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->ended == stream->issued; });
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  std::vector<std::shared_ptr<Stream>> mine;
  {
    const std::scoped_lock lock(runtime().mutex);
    for (const auto& [handle, stream] : runtime().streams)
      if (stream->device == device && !stream->destroyed) mine.push_back(stream);
  }
  for (const std::shared_ptr<Stream>& stream : mine)
    if (const cudaError_t error = cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream.get()))) return error;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  const std::shared_ptr<Event> event = event_of(event_handle);
  if (stream == nullptr || event == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a wait of or for nothing");
  if (event->captured) {
    const std::shared_ptr<Capture> capture = event->capture.lock();
    if (capture == nullptr || (stream->capture != nullptr && stream->capture != capture))
      return misuse(cudaErrorStreamCaptureIsolation, "a wait for an event of another capture");
    stream->capture = capture;
    Reached& reached = capture->streams[stream.get()];
    for (const auto& [each, count] : event->reached) reached[each] = std::max(reached[each], count);
    return cudaSuccess;
  }
  if (stream->capture != nullptr)
    return misuse(cudaErrorStreamCaptureIsolation, "a wait inside a capture for an event recorded outside");
  if (event->issued == 0) return misuse(cudaErrorInvalidResourceHandle, "a wait for an event that was never recorded");
  if (++runtime().waits == runtime().drop_wait) return cudaSuccess;
  put(stream, [event, ticket = event->issued] {
    std::unique_lock lock(event->mutex);
    event->changed.wait(lock, [&] { return event->ended >= ticket; });
    queue_clock_ns = std::max(queue_clock_ns, event->time_ns);
  });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  if (stream == nullptr || stream->capture != nullptr || thread_captures())
    return misuse(cudaErrorInvalidResourceHandle, "a capture of no stream, or inside another");
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream.get();
  stream->capture->streams[stream.get()];
  thread_captures() = true;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  if (stream == nullptr) return misuse(cudaErrorInvalidResourceHandle, "whether no stream is captured");
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  if (stream == nullptr || stream->capture == nullptr || stream->capture->origin != stream.get())
    return misuse(cudaErrorInvalidResourceHandle, "an end of no capture");
  const std::shared_ptr<Capture> capture = stream->capture;
  thread_captures() = false;
  const Reached& joined = capture->streams[stream.get()];
  bool all = true;
  for (auto& [each, reached] : capture->streams) {
    each->capture = nullptr;
    const auto mine = reached.find(each);
    const auto seen = joined.find(each);
    if (mine != reached.end() && (seen == joined.end() || seen->second < mine->second)) all = false;
  }
  if (!all) return misuse(cudaErrorStreamCaptureUnjoined, "a capture whose streams are not all joined");
  *graph = reinterpret_cast<cudaGraph_t>(capture->graph.get());
  const std::scoped_lock lock(runtime().mutex);
  runtime().graphs[*graph] = capture->graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  auto copy = std::make_shared<Graph>();
  const std::scoped_lock lock(runtime().mutex);
  const auto at = runtime().graphs.find(graph);
  if (at == runtime().graphs.end()) return misuse(cudaErrorInvalidResourceHandle, "no graph to instantiate");
  copy->tasks = at->second->tasks;
  *made = reinterpret_cast<cudaGraphExec_t>(copy.get());
  runtime().graphs[*made] = std::move(copy);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::scoped_lock lock(runtime().mutex);
  return runtime().graphs.erase(graph) == 1 ? cudaSuccess
                                            : misuse(cudaErrorInvalidResourceHandle, "a graph destroyed twice");
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return cudaGraphDestroy(reinterpret_cast<cudaGraph_t>(graph)); }

// One after the other: the hardest case for whoever counts on items that run side by side.
cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
  std::shared_ptr<Graph> graph;
  {
    const std::scoped_lock lock(runtime().mutex);
    const auto at = runtime().graphs.find(handle);
    if (at != runtime().graphs.end()) graph = at->second;
  }
  if (graph == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a launch of no graph");
  return enqueue(stream, "a graph", [graph] {
    for (const Task& task : graph->tasks) task();
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  auto event = std::make_shared<Event>();
  event->has_time = (flags & cudaEventDisableTiming) == 0;
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  const std::scoped_lock lock(runtime().mutex);
  runtime().events[*handle] = std::move(event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  if (event == nullptr) return misuse(cudaErrorInvalidResourceHandle, "an event destroyed twice");
  const std::scoped_lock lock(runtime().mutex);
  event->destroyed = true;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  const std::shared_ptr<Event> event = event_of(handle);
  const std::shared_ptr<Stream> stream = stream_of(stream_handle);
  if (event == nullptr || stream == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a record of or on nothing");
  const bool captures = stream->capture != nullptr;
  if (captures && flags != cudaEventRecordExternal) {
    event->capture = stream->capture;
    event->captured = true;
    event->reached = stream->capture->streams[stream.get()];
    return cudaSuccess;
  }
  {
    const std::scoped_lock lock(event->mutex);
    event->captured = false;
    if (!captures) ++event->issued;
  }
  put(stream, recording(event, captures));
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  if (event == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a query of no event");
  if (forbidden_in_capture("a query of an event")) return cudaErrorStreamCaptureUnsupported;
  const std::scoped_lock lock(event->mutex);
  return event->ended >= event->issued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  if (event == nullptr) return misuse(cudaErrorInvalidResourceHandle, "a sync with no event");
  if (forbidden_in_capture("a sync")) return cudaErrorStreamCaptureUnsupported;
  std::unique_lock lock(event->mutex);
  event->changed.wait(lock, [&] { return event->ended >= event->issued; });
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from_handle, cudaEvent_t to_handle) {
  const std::shared_ptr<Event> from = event_of(from_handle);
  const std::shared_ptr<Event> to = event_of(to_handle);
  if (from == nullptr || to == nullptr || !from->has_time || !to->has_time)
    return misuse(cudaErrorInvalidResourceHandle, "a time between events that have none");
  const std::scoped_lock lock(from->mutex, to->mutex);
  if (from->ended == 0 || to->ended == 0) return misuse(cudaErrorInvalidResourceHandle, "a time of an event never recorded");
  if (from->ended < from->issued || to->ended < to->issued) return cudaErrorNotReady;
  *ms = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(to->time_ns - from->time_ns)) * 1e-6);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return enqueue(stream, "a host function", [function, data] { function(data); });
}

}  // extern "C"
