#include "executor/cores.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace stave {
namespace {

TEST_CASE("never more than there are cores compute, and none that waits is forgotten") {
  Cores cores(2);
  std::atomic<int> computing = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        cores.acquire();
        const int now = ++computing;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
        --computing;
        cores.release();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(most <= 2);
}

}  // namespace
}  // namespace stave
