#include "executor/clock.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <thread>

namespace stave {

namespace {

constexpr Ticks kSecond = 1'000'000'000;
constexpr Ticks kSpin = 50'000;
constexpr Ticks kLookAtStop = 50'000'000;

Ticks read(clockid_t clock) {
  timespec t = {};
  clock_gettime(clock, &t);
  return static_cast<Ticks>(t.tv_sec) * kSecond + t.tv_nsec;
}

}  // namespace

Ticks now_ns() { return read(CLOCK_MONOTONIC); }

Ticks thread_cpu_ns() { return read(CLOCK_THREAD_CPUTIME_ID); }

void sharpen_sleep_of_thread() { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

bool sleep_until_ns(Ticks time, const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
    const Ticks now = now_ns();
    if (now >= time) return true;
    if (time - now <= kSpin) continue;
    const Ticks target = std::min(time - kSpin, now + kLookAtStop);
    timespec t = {};
    t.tv_sec = static_cast<time_t>(target / kSecond);
    t.tv_nsec = static_cast<long>(target % kSecond);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
  }
  return false;
}

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace stave
