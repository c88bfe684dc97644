// Dependences: what must have started or ended before each job of a simulation may start. A job is a node of a program, or
// several that run as one. Follows from the program, the changes between ops, and the rules that are about order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/lanes.h"
#include "core/program.h"
#include "scheduler/contention/rules.h"
#include "scheduler/costs.h"

namespace stave {

class Dependences {
 public:
  /// What may go on once a job has ended.
  struct After {
    NodeId node;
    /// So long after.
    Ticks setup = 0;
    /// It frees the slot that a message arrives in, without which one that may be buffered can leave.
    bool frees_slot = false;
  };

  /// All must outlive it. Cost: O(nodes + waits).
  Dependences(const Program& program, const Costs& costs, const SimulationRules& rules);

  std::uint32_t jobs() const { return jobs_; }
  /// A job has the number of its first node.
  std::uint32_t job_of(std::uint32_t node) const {
    return is_single(node) ? node : program_.table.blocks[block_of_[node]][0];
  }
  /// Calls `visit(node)` for each of its nodes.
  template <class Visit>
  void each_member(std::uint32_t job, const Visit& visit) const {
    if (is_single(job)) return visit(job);
    for (std::uint32_t node : program_.table.blocks[block_of_[job]]) visit(node);
  }
  /// Of an op: its device; of several that run as one, that of the first.
  std::uint32_t device_of(std::uint32_t job) const { return lanes_.device_at(job); }
  /// It is an op of a device's computing, and not of a stream beside it.
  bool computes(std::uint32_t job) const { return lanes_.computes(job); }

  /// Starts and ends that a job still waits for; and ends that free the slot of a message, where those are apart. A
  /// simulation counts them down.
  std::uint32_t& pending(std::uint32_t job) { return nodes_[job].pending; }
  std::uint32_t& slot_pending(std::uint32_t message) { return slot_pending_[message]; }

  /// The message that may start once this one has, or none.
  NodeId after_start(NodeId message) const {
    return ends_queue_ ? NodeId() : next_[program_.message_of(message).value];
  }

  /// Calls `visit(After)` for each, of a job as a whole.
  template <class Visit>
  void each_after_end(std::uint32_t job, const Visit& visit) const {
    each_member(job, [&](std::uint32_t node) {
      for (std::uint32_t i = nodes_[node].first; i < nodes_[node + 1].first; ++i) {
        const NodeId follower = followers_[i];
        if (job_of(follower.value) != job) visit(After{follower, 0, frees_slot(node, follower)});
      }
      if (program_.is_message(NodeId(node))) return;
      const std::uint32_t next = lanes_.next(node);
      if (next != Lanes::kNone && job_of(next) != job)
        visit(After{NodeId(next), costs_.setup(program_.table, node, next), false});
    });
  }

  /// Whether what follows the end of a message needs only that it has left its slot at the sender.
  bool is_at_source(const Message& message, NodeId follower) const;

 private:
  bool is_single(std::uint32_t node) const { return node >= block_of_.size() || block_of_[node] == UINT32_MAX; }
  bool frees_slot(std::uint32_t before, NodeId node) const {
    return has_buffers_ && program_.is_message(node) && is_at_target(program_.message(node), NodeId(before));
  }
  bool is_at_target(const Message& message, NodeId before) const;
  template <class Visit>
  void each_queued(const Visit& visit) const;

  const Program& program_;
  const Costs& costs_;
  const Lanes lanes_;
  const bool has_buffers_;
  /// What is next on an edge, or in the queue of a device, waits for an end, and stands among the followers.
  const bool ends_queue_;
  std::vector<std::uint32_t> block_of_;
  std::uint32_t jobs_ = 0;
  /// By node; together, for each is looked at when the other is not far.
  struct Node {
    /// Its first follower; those of a node end where those of the next begin.
    std::uint32_t first = 0;
    std::uint32_t pending = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> slot_pending_;
  /// By message, the one after it on its edge.
  std::vector<NodeId> next_;
  /// What waits for the end of a node, the next one on its lane excepted.
  std::vector<NodeId> followers_;
};

}  // namespace stave
