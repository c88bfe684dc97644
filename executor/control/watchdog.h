// Watchdog: finds out that a rank which lives does not get on, says who waits for whom, and ends the run. What the lanes
// of a rank do, and how long that should take, is told by those who run them; ranks that die are the control plane's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/ticks.h"
#include "executor/control/control.h"

namespace stave {

struct WatchdogTimes {
  /// What a lane does may take so long, or `factor` times what was predicted, if that is more.
  Ticks least_ns = 10'000'000'000;
  std::int64_t factor = 20;
  /// Between the warning and the end of the run.
  Ticks grace_ns = 2'000'000'000;
};

class Watchdog {
 public:
  /// Says in words what a lane does, of which begin() was told `what`, and the rank it waits for. From any thread, at
  /// any time up to the end of the watchdog.
  using Describe = std::function<Position(std::uint32_t lane, std::uint64_t what)>;

  /// From now on this is the position that `control` tells. `warn` gets a text of several lines, on one of the ranks
  /// only, from a thread of the watchdog.
  Watchdog(Control& control, std::uint32_t lanes, Describe describe, std::function<void(const std::string&)> warn,
           WatchdogTimes times = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// A lane begins `what`, which should end after `predicted_ns`, the time that it waits included. By the lane's own
  /// thread. Cost: reading the clock.
  void begin(std::uint32_t lane, std::uint64_t what, Ticks predicted_ns);
  void end(std::uint32_t lane);

  /// Of the lane that has been at the same for longest; if all have ended, what the last one was at.
  Position position() const;

 private:
  struct alignas(64) Lane {
    /// 0 between two.
    std::atomic<Ticks> began = 0;
    std::atomic<Ticks> limit = 0;
    std::atomic<std::uint64_t> what = 0;
    /// When what was warned of had begun. Of the watchdog's thread.
    Ticks warned = 0;
  };

  void watch();
  void look_at(std::uint32_t lane, Ticks now);
  void warn_of(const std::string& what);

  Control& control_;
  const Describe describe_;
  const std::function<void(const std::string&)> warn_;
  const WatchdogTimes times_;
  std::vector<Lane> lanes_;
  /// The lane that has begun something last.
  std::atomic<std::uint32_t> latest_ = kNobody;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

/// From one rank on, by whom each waits for, to the one that waits for nobody, or round in a circle: "rank 2 waits for
/// rank 1, which waits for rank 0, which is at F(0, 4)".
std::string describe_waits(const std::vector<Position>& positions, std::uint32_t from);

}  // namespace stave
