// Lanes: walks a checked Program. A thread a device takes its ops in order; the lane of an edge has no thread of its
// own: whoever makes its next message ready carries it, so that a transfer never waits for a compute lane.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/execution.h"

namespace stave {

class Lanes {
 public:
  explicit Lanes(Execution& execution);

  /// Once a step, before any thread walks.
  void begin_step();
  /// Runs the ops of device `d`, on the calling thread. False if the run was stopped.
  bool walk(Team& team, DeviceId d);
  /// After a stop: lets no thread wait any longer.
  void wake();

 private:
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable changed;
  };

  bool wait_for(const Team& team, DeviceId d, std::uint32_t position);
  // Counts down those that waited for `ended`; carries the messages that become ready, and goes on from them.
  bool release_followers(Team& team, NodeId ended, std::vector<NodeId>& ready);
  void release(NodeId n, std::vector<NodeId>& ready);

  Execution& execution_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> pending_;
  std::vector<Mailbox> mailboxes_;
};

}  // namespace stave
