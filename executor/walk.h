// Walk: runs a checked Program. A thread a lane takes its ops in order: a device's computing, or one of its streams.
// The lane of an edge has no thread of its own: whoever makes its next message ready carries it, so that a transfer
// never waits for a compute lane.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "core/lanes.h"
#include "executor/execution.h"

namespace stave {

class Walk {
 public:
  explicit Walk(Execution& execution);

  /// How many threads are needed: lane d is the computing of device d, those above are streams.
  std::uint32_t lanes() const { return lanes_.count(); }

  /// Once a step, before any thread walks.
  void begin_step();
  /// Runs the ops of a lane, on the calling thread. False if the run was stopped.
  bool run(Team& team, std::uint32_t lane);
  /// After a stop: lets no thread wait any longer.
  void wake();

 private:
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable changed;
  };

  bool wait_for(const Team& team, std::uint32_t lane, std::uint32_t position);
  // Counts down those that waited for `ended`; carries the messages that become ready, and goes on from them.
  bool release_followers(Team& team, NodeId ended, std::vector<NodeId>& ready);
  void release(NodeId n, std::vector<NodeId>& ready);

  Execution& execution_;
  const Lanes lanes_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> pending_;
  std::vector<Mailbox> mailboxes_;
};

}  // namespace stave
