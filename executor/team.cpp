#include "executor/team.h"

#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace stave {

Result<void> Team::run(const std::function<void(std::uint32_t)>& work, const std::function<void()>& watch) {
  std::vector<std::thread> threads;
  std::uint32_t started = 0;
  try {
    threads.reserve(members_);
    for (; started < members_; ++started) {
      threads.emplace_back([this, &work, member = started] {
        try {
          work(member);
        } catch (const std::exception& e) {
          fail("thread " + std::to_string(member) + " of the run: " + e.what());
        }
        const std::scoped_lock lock(mutex_);
        ++returned_;
        changed_.notify_all();
      });
    }
  } catch (const std::system_error& e) {
    fail("cannot start thread " + std::to_string(started) + " of the run: " + e.what());
  }
  {
    std::unique_lock lock(mutex_);
    while (returned_ < started) {
      // Of the system clock: the thread sanitizer of GCC 12 does not know the wait on a steady one.
      changed_.wait_until(lock, std::chrono::system_clock::now() + std::chrono::milliseconds(20));
      lock.unlock();
      watch();
      lock.lock();
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (failed_) return Failure{failure_};
  return {};
}

bool Team::meet(const std::function<void()>& last) {
  std::unique_lock lock(mutex_);
  if (stopped_) return false;
  if (++here_ == members_) {
    // Everybody else waits, so nobody can need the lock for long but `run`, which only looks.
    lock.unlock();
    last();
    lock.lock();
    here_ = 0;
    ++meetings_;
    changed_.notify_all();
    return !stopped_;
  }
  const std::uint64_t meeting = meetings_;
  changed_.wait(lock, [&] { return meetings_ != meeting || stopped_; });
  return !stopped_;
}

void Team::fail(std::string message) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failed_ && !stopped_) {
      failed_ = true;
      failure_ = std::move(message);
    }
  }
  stop();
}

void Team::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  wake_();
}

}  // namespace stave
