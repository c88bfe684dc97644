// Cores: how many threads may compute at once. Which ones do is up to who asks first.
#pragma once

#include <condition_variable>
#include <mutex>

namespace stave {

/// A counting semaphore; not the library's, for that of GCC 12 may leave a thread asleep for ever while it is above
/// zero.
class Cores {
 public:
  explicit Cores(unsigned count) : free_(count) {}

  void acquire() {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return free_ > 0; });
    --free_;
  }

  void release() {
    const std::scoped_lock lock(mutex_);
    ++free_;
    released_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  unsigned free_;
};

}  // namespace stave
