// Rendezvous: walks a Program that was lowered unchecked, one strict queue a device, in which a send waits for its
// receive and holds up both ends. When every device that has not finished is blocked, it says who waits for whom.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/lanes.h"
#include "core/program.h"
#include "core/ticks.h"

namespace stave {

class Execution;
class Team;

/// Every unfinished device is blocked, and stays so.
struct Deadlock {
  struct Blocked {
    DeviceId device;
    /// Head of the device's queue.
    NodeId node;
    /// What must end first; for a message whose other end is not ready, the message itself.
    NodeId needs;
    /// The device whose queue has to bring that about; it may be the same one.
    DeviceId on;
    /// What that device is stuck at, or done with all (not valid).
    NodeId instead;
  };
  /// By rising device.
  std::vector<Blocked> blocked;
  /// Devices each of which waits for the next, and the last for the first; empty if some waits for one that is done.
  std::vector<DeviceId> cycle;
};

/// A line for every blocked device, and one for the cycle.
std::string describe(const Program& program, const Deadlock& deadlock);

class Rendezvous {
 public:
  explicit Rendezvous(Execution& execution);

  void begin_step();
  /// Runs the queue of device `d` on the calling thread. False if the run was stopped, by a deadlock for one.
  bool walk(Team& team, DeviceId d);
  void wake();

  /// After the run: the deadlock that ended it, if one did.
  const Deadlock& deadlock() const { return deadlock_; }
  bool is_deadlocked() const { return deadlocked_; }

 private:
  NodeId head(DeviceId d) const;
  DeviceId other_end(NodeId message, DeviceId d) const;
  bool ready(DeviceId d) const;
  bool blocked_for_ever() const;
  Deadlock::Blocked why(DeviceId d) const;
  void note_deadlock();

  Execution& execution_;
  const Lanes lanes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint32_t> cursor_;
  std::vector<std::uint8_t> running_;
  std::vector<std::uint8_t> done_;
  std::vector<Ticks> lane_end_;
  bool deadlocked_ = false;
  Deadlock deadlock_;
};

}  // namespace stave
