// A walk over a table in an order in which it can run: every lane in its order, every entry after all that it needs,
// the entries of a block all at once. What is done on the way, times for one, is the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/table_needs.h"
#include "core/lanes.h"
#include "core/table.h"

namespace stave {

class TableWalk {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// All must outlive it.
  TableWalk(const Table& table, const Lanes& lanes, const TableNeeds& needs)
      : table_(table),
        lanes_(lanes),
        needs_(needs),
        block_of_(blocks_of(table)),
        arrived_(table.blocks.size(), 0),
        done_(table.size(), false),
        first_waiter_(table.size(), kNone),
        next_waiter_(lanes.count(), kNone) {
    for (std::uint32_t lane = 0; lane < lanes.count(); ++lane) heads_.push_back(lanes.head(lane));
  }

  /// Calls `run(positions)` for each block, and each entry that is in none. True if every lane came to its end.
  /// Cost: O(entries + needs).
  template <class Run>
  bool run(Run&& run) {
    for (std::uint32_t lane = lanes_.count(); lane-- > 0;) runnable_.push_back(lane);
    while (!runnable_.empty()) {
      const std::uint32_t lane = runnable_.back();
      runnable_.pop_back();
      go_on(lane, run);
    }
    for (std::uint32_t head : heads_)
      if (head != kNone) return false;
    return true;
  }

  /// Where each lane stopped: a position, or kNone at its end.
  const std::vector<std::uint32_t>& heads() const { return heads_; }
  const std::vector<bool>& done() const { return done_; }

 private:
  template <class Run>
  void go_on(std::uint32_t lane, Run& run) {
    std::uint32_t& head = heads_[lane];
    for (; head != kNone; head = lanes_.next(head)) {
      needs_.fetch_behind(head);
      __builtin_prefetch(first_waiter_.data() + head + 16);
      // As part of a block whose other entries came later.
      if (done_[head]) continue;
      if (!block_of_.empty() && block_of_[head] != kNone) {
        if (!run_block(lane, head, run)) return;
        continue;
      }
      if (const std::uint32_t missing = first_missing(head); missing != kNone) return sleep(lane, missing);
      run(std::span<const std::uint32_t>(&head, 1));
      finish(head);
    }
  }

  std::uint32_t first_missing(std::uint32_t position) const {
    std::uint32_t missing = kNone;
    for (const TableNeed& need : needs_[position])
      if (!done_[need.position]) missing = need.position;
    const std::uint32_t before = lanes_.written_after(position);
    if (before != kNone && !done_[before]) missing = before;
    return missing;
  }

  /// False if the lane sleeps.
  template <class Run>
  bool run_block(std::uint32_t lane, std::uint32_t head, Run& run) {
    const std::uint32_t block = block_of_[head];
    std::uint32_t here = 0;
    for (std::uint32_t at = head; at != kNone && block_of_[at] == block; at = lanes_.next(at)) {
      if (const std::uint32_t missing = first_missing(at); missing != kNone) return sleep(lane, missing), false;
      ++here;
    }
    const std::span<const std::uint32_t> all = table_.blocks[block];
    arrived_[block] += here;
    if (arrived_[block] < all.size()) return sleep(lane, head), false;
    run(all);
    for (std::uint32_t position : all) finish(position);
    return true;
  }

  void finish(std::uint32_t position) {
    done_[position] = true;
    for (std::uint32_t lane = first_waiter_[position]; lane != kNone; lane = next_waiter_[lane])
      runnable_.push_back(lane);
  }

  void sleep(std::uint32_t lane, std::uint32_t position) {
    next_waiter_[lane] = first_waiter_[position];
    first_waiter_[position] = lane;
  }

  const Table& table_;
  const Lanes& lanes_;
  const TableNeeds& needs_;
  std::vector<std::uint32_t> block_of_;
  /// By block: how many of its entries are at the heads of their lanes with all that they need.
  std::vector<std::uint32_t> arrived_;
  std::vector<bool> done_;
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> runnable_;
  std::vector<std::uint32_t> first_waiter_;
  std::vector<std::uint32_t> next_waiter_;
};

}  // namespace stave
