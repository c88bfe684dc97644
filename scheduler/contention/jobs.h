// Jobs: what a simulation runs, and what must have started or ended before each may start. A job is a node of a program, or
// several that run as one. Follows from the program and the rules that are about order.
//
// The number of a job is the place of its first node in the program's order, so that those that run at about one time lie
// side by side in memory. (By number of node, neighbours in time lie a row apart: the pass took three times as long.)
#pragma once

#include <cstdint>
#include <vector>

#include "core/fetch.h"
#include "core/ids.h"
#include "core/lanes.h"
#include "core/program.h"
#include "core/ticks.h"
#include "scheduler/contention/rules.h"

namespace stave {

class Jobs {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// What may go on once a job has ended.
  struct After {
    std::uint32_t job;
    /// It frees the slot that a message arrives in, without which one that may be buffered can leave.
    bool frees_slot;
    /// Of a message: it is at the sender, and needs only that the data has left.
    bool is_at_source;
  };

  /// `lengths` are by node. Both must outlive it. Cost: O(nodes + waits).
  Jobs(const Program& program, const std::vector<Ticks>& lengths, const SimulationRules& rules);

  /// One more than the greatest number; of several nodes that run as one only the first has a job.
  std::uint32_t end() const { return static_cast<std::uint32_t>(jobs_.size()); }
  std::uint32_t count() const { return count_; }
  bool is_job(std::uint32_t number) const { return jobs_[number].place != kNone; }
  std::uint32_t job_of(std::uint32_t node) const { return job_of_[node]; }
  NodeId first_node(std::uint32_t job) const { return program_.order[job]; }
  /// Calls `visit(position)` for each op of a job of ops.
  template <class Visit>
  void each_position(std::uint32_t job, const Visit& visit) const {
    const std::uint32_t first = first_node(job).value;
    if (block_of_.empty() || block_of_[first] == kNone) return visit(first);
    for (std::uint32_t position : program_.table.blocks[block_of_[first]]) visit(position);
  }
  const Lanes& lanes() const { return lanes_; }

  bool is_message(std::uint32_t job) const { return (jobs_[job].place & kMessage) != 0; }
  /// Of an op: its device; of several that run as one, that of the first.
  std::uint32_t device(std::uint32_t job) const { return jobs_[job].place; }
  std::uint32_t edge(std::uint32_t message) const { return jobs_[message].place & ~kMessage; }
  Ticks length(std::uint32_t job) const { return jobs_[job].length; }

  /// Fetches what the end of a job that starts now needs, and jobs that will be looked at soon.
  void prefetch(std::uint32_t job) const {
    if (jobs_[job].first_arrow != kNone) fetch(arrows_, jobs_[job].first_arrow);
    fetch(jobs_, job + kSoon);
  }

  /// Starts and ends that a job still waits for; and, where those are apart, ends that free the slot of a message. A
  /// simulation counts them down.
  std::uint32_t& pending(std::uint32_t job) { return jobs_[job].pending; }
  std::uint32_t& slot_pending(std::uint32_t message) { return slot_pending_[message]; }

  /// The message that may start once this one has, or kNone.
  std::uint32_t after_start(std::uint32_t message) const { return jobs_[message].next; }
  /// Calls `visit(After)` for each.
  template <class Visit>
  void each_after_end(std::uint32_t job, const Visit& visit) const {
    if (!is_message(job) && jobs_[job].next != kNone) visit(After{jobs_[job].next, false, false});
    for (std::uint32_t i = jobs_[job].first_arrow; i != kNone; i = arrows_[i].next) {
      const std::uint8_t marks = marks_.empty() ? 0 : marks_[i];
      visit(After{arrows_[i].to, (marks & kFreesSlot) != 0, (marks & kAtSource) != 0});
    }
  }

 private:
  static constexpr std::uint32_t kMessage = 1u << 31;
  /// Further than from a job to what it lets start, in most schedules, and near enough to stay in a cache.
  static constexpr std::uint32_t kSoon = 8192;
  static constexpr std::uint8_t kFreesSlot = 1;
  static constexpr std::uint8_t kAtSource = 2;

  struct Job {
    std::uint32_t pending = 0;
    std::uint32_t first_arrow = kNone;
    /// The one after it on its edge, which may start once it has, or on its lane, once it has ended.
    std::uint32_t next = kNone;
    /// The device of an op, or the edge of a message and kMessage.
    std::uint32_t place = kNone;
    Ticks length = 0;
  };
  /// From the end of a job to what waits for it; with the next from the same.
  struct Arrow {
    std::uint32_t to;
    std::uint32_t next;
  };

  void add_all(const std::vector<Ticks>& lengths, const SimulationRules& rules);
  void add_queues();
  void arrow(NodeId before, NodeId node);
  bool is_at_target(const Message& message, NodeId before) const;

  const Program& program_;
  const Lanes lanes_;
  const std::vector<std::uint32_t> block_of_;
  std::uint32_t count_ = 0;
  std::vector<Job> jobs_;
  std::vector<Arrow> arrows_;
  /// By arrow; empty without buffers.
  std::vector<std::uint8_t> marks_;
  bool has_buffers_ = false;
  std::vector<std::uint32_t> slot_pending_;
  /// By node.
  std::vector<std::uint32_t> job_of_;
};

}  // namespace stave
