// Dependences: what must have started or ended before each job of a simulation may start. A job is a node of a program, or
// several that run as one. Follows from the program, the changes between ops, and the rules that are about order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/lanes.h"
#include "core/program.h"
#include "core/rows.h"
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

  /// Cost: O(nodes + waits).
  Dependences(const Program& program, const Costs& costs, const SimulationRules& rules);

  std::uint32_t jobs() const { return jobs_; }
  /// A job has the number of its first node.
  std::uint32_t job_of(std::uint32_t node) const {
    return node >= block_of_.size() || block_of_[node] == UINT32_MAX ? node : program_.table.blocks[block_of_[node]][0];
  }
  std::span<const std::uint32_t> members(std::uint32_t job) const {
    if (job >= block_of_.size() || block_of_[job] == UINT32_MAX) return std::span(&numbers_[job], 1);
    return program_.table.blocks[block_of_[job]];
  }
  /// Of an op: its device; of several that run as one, that of the first.
  std::uint32_t device_of(std::uint32_t job) const { return lanes_.device_at(job); }
  /// It is an op of a device's computing, and not of a stream beside it.
  bool computes(std::uint32_t job) const { return lanes_.computes(job); }

  /// By job, how many starts and ends it waits for; and by message, how many ends free its slot, where that is apart.
  const std::vector<std::uint32_t>& pending() const { return pending_; }
  const std::vector<std::uint32_t>& slot_pending() const { return slot_pending_; }
  std::span<const NodeId> after_start(std::uint32_t job) const;
  std::span<const After> after_end(std::uint32_t job) const { return after_end_[job]; }

  /// Whether what follows the end of a message needs only that it has left its slot at the sender.
  bool is_at_source(const Message& message, NodeId follower) const;

 private:
  struct Arrow {
    std::uint32_t from;
    After to;
  };
  void add(NodeId before, std::uint32_t node, Ticks setup, std::vector<Arrow>& arrows);
  void add_lanes(const Costs& costs, std::vector<Arrow>& arrows);
  void add_messages(const SimulationRules& rules, std::vector<Arrow>& arrows);
  void add_queues(std::vector<Arrow>& arrows);
  bool is_at_target(const Message& message, NodeId before) const;

  const Program& program_;
  const Lanes lanes_;
  const bool has_buffers_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t jobs_ = 0;
  std::vector<std::uint32_t> pending_;
  std::vector<std::uint32_t> slot_pending_;
  /// By message, the one after it on its edge, where its start is what that waits for; else empty.
  std::vector<NodeId> next_;
  Rows<After> after_end_;
};

}  // namespace stave
