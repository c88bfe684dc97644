// Walk: runs a checked Program. A thread a lane takes its ops in order: a device's computing, or one of its streams.
// The lane of an edge within the process has no thread of its own: whoever makes its next message ready carries it, so
// that a transfer never waits for a compute lane. That of an edge to or from another process has one, which waits there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "core/lanes.h"
#include "executor/control/watchdog.h"
#include "executor/execution.h"

namespace stave {

class Walk {
 public:
  explicit Walk(Execution& execution);

  /// How many threads are needed.
  std::uint32_t threads() const { return static_cast<std::uint32_t>(mine_.size() + edges_.size()); }
  /// The device whose computing is the work of a thread; not valid of streams and edges.
  DeviceId computes(std::uint32_t thread) const;

  /// What a thread is at, node `what`, in words, and the rank that it waits for there: the other end of a message, or one
  /// that a reduction is with, where this is the only one it can be. From any thread. Cost: O(waits of the program).
  Position position(std::uint64_t what) const;
  /// Is told what each thread comes to.
  void watch_with(Watchdog* watchdog) { watchdog_ = watchdog; }

  /// Once a step, before any thread walks; `predicted_ns` is about how long it will take.
  void begin_step(Ticks predicted_ns);
  /// Does the work of a thread, on the calling one. False if the run was stopped.
  bool run(Team& team, std::uint32_t thread);
  /// After a stop: lets no thread wait any longer.
  void wake();

 private:
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable changed;
  };

  void find_pending();
  // The rank without which a node under way here does not end; kNobody if it is several or none.
  std::uint32_t other_of(NodeId n) const;
  bool run_lane(Team& team, std::uint32_t thread);
  bool run_edge(Team& team, std::uint32_t thread);
  Mailbox& mailbox_of(NodeId n);
  bool wait_for(const Team& team, NodeId node);
  // Counts down those that waited for `ended`; carries the messages that become ready, and goes on from them.
  bool release_followers(Team& team, NodeId ended, std::vector<NodeId>& ready);
  void release(NodeId n, std::vector<NodeId>& ready);

  Execution& execution_;
  const Lanes lanes_;
  // Lanes that are run here, and edges between here and elsewhere: a thread each, in this order. By edge its thread, or
  // none.
  std::vector<std::uint32_t> mine_;
  std::vector<EdgeId> edges_;
  std::vector<std::uint32_t> edge_thread_;
  // By edge of `edges_`: its messages, in order.
  std::vector<std::vector<NodeId>> messages_;
  // By node: how many ends here it waits for at the start of a step, and now.
  std::vector<std::uint32_t> first_pending_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> pending_;
  // By node: whether it has ended in this step.
  std::unique_ptr<std::atomic<bool>[]> ended_;
  // By thread.
  std::vector<Mailbox> mailboxes_;
  std::vector<std::uint32_t> lane_thread_;
  Watchdog* watchdog_ = nullptr;
  Ticks predicted_ns_ = 0;
};

}  // namespace stave
