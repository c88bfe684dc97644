// Team: the threads of a run; where they meet between steps, and how one that fails ends them all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "core/result.h"

namespace stave {

class Team {
 public:
  /// `wake` is called after a stop, to free threads that wait for something else than `meet`.
  Team(std::uint32_t members, std::function<void()> wake) : members_(members), wake_(std::move(wake)) {}

  /// Runs `work(member)` on a thread each until all have returned. An exception of one is its failure. Meanwhile calls
  /// `watch` every 20 ms, which may stop the team.
  /// Errors: the first failure; a thread that the system does not give.
  Result<void> run(const std::function<void(std::uint32_t)>& work, const std::function<void()>& watch);

  /// Waits until every member is here; the last one to come runs `last` before any goes on. False if the team was
  /// stopped.
  bool meet(const std::function<void()>& last);

  /// Ends the run. The first failure is kept. Any thread may call it.
  void fail(std::string message);
  /// Ends the run without a failure.
  void stop();

  const std::atomic<bool>& stopped() const { return stopped_; }

 private:
  const std::uint32_t members_;
  const std::function<void()> wake_;
  std::atomic<bool> stopped_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t here_ = 0;
  std::uint64_t meetings_ = 0;
  std::uint32_t returned_ = 0;
  bool failed_ = false;
  std::string failure_;
};

}  // namespace stave
