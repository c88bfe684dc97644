// The inside of the stand-in for the CUDA runtime: streams, the hardware queues they are folded onto, events, capture.
// The functions that programs call are in runtime.cpp, memory.cpp and launch.cpp; all end here.
//
// Settings, by environment: FAKE_CUDA_DEVICES (1), FAKE_CUDA_FIRST_DEVICE (0; which of its host's the first one is),
// CUDA_DEVICE_MAX_CONNECTIONS (8; hardware queues a device, 32 at most), FAKE_CUDA_KERNEL_US, FAKE_CUDA_COPY_US,
// FAKE_CUDA_COPY_BYTES_PER_US (length of a kernel, a product among them, of a copy and of its bytes: see stand_in.h),
// FAKE_CUDA_JITTER_US (greatest random delay before any item of a stream), FAKE_CUDA_FAIL_AFTER (the n-th kernel, copy or
// host function enqueued is refused), FAKE_CUDA_DROP_WAIT (the n-th wait of a stream for an event is left out),
// FAKE_CUDA_STRICT (a process that misused something ends with status 70).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "stand_in.h"

namespace stave::fake {

/// Whole number of an environment variable.
std::uint64_t setting(const char* name, std::uint64_t otherwise);

using Task = std::function<void()>;

/// What was captured, in the order in which it was enqueued; so it is replayed.
struct Graph {
  std::vector<Task> tasks;
};

struct Stream;

/// How far each stream's part of a capture is known to have ended where one stands.
using Reached = std::map<const Stream*, std::uint64_t>;

struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Stream* origin = nullptr;
  /// By stream that takes part: what it waits for, itself among it.
  std::map<Stream*, Reached> streams;
};

/// A queue of the hardware: runs the items of all streams folded onto it one after the other, whatever they wait for.
class Queue {
 public:
  Queue();
  void push(Task task);

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  struct Item {
    Task task;
    std::uint64_t enqueued_ns = 0;
  };
  std::deque<Item> items_;
};

struct Stream {
  Queue* queue = nullptr;
  int device = 0;
  std::shared_ptr<Capture> capture;
  /// Enqueued so far, by the thread that enqueues; ended so far.
  std::uint64_t issued = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t ended = 0;
  bool destroyed = false;
};

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t issued = 0;
  std::uint64_t ended = 0;
  std::uint64_t time_ns = 0;
  bool has_time = true;
  bool destroyed = false;
  /// Where it was last recorded, if in a capture.
  std::weak_ptr<Capture> capture;
  bool captured = false;
  Reached reached;
};

/// Says on stderr what the program did wrong, and gives the error back.
cudaError_t misuse(cudaError_t error, const std::string& what);

/// Objects by handle. One that was destroyed stays known as such.
std::shared_ptr<Stream> stream_of(cudaStream_t handle);
std::shared_ptr<Event> event_of(cudaEvent_t handle);

/// Puts a task on a stream, or into the graph that it captures. Counts towards FAKE_CUDA_FAIL_AFTER.
cudaError_t enqueue(cudaStream_t stream, const char* what, Task task);
/// Whether the calling thread has a capture under way; syncs and allocations are then errors.
bool& thread_captures();

int current_device();
void set_last_error(cudaError_t error);

}  // namespace stave::fake
