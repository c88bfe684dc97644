// A walk over a table in an order in which it can run: every lane in its order, every entry after all that it needs,
// the entries of a block all at once. What is done on the way is the caller's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
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
        awaited_(lanes.count(), kNone),
        sleepers_(lanes.count()) {
    for (std::uint32_t lane = 0; lane < lanes.count(); ++lane) heads_.push_back(lanes.head(lane));
  }

  /// Calls `run(positions)` for each block, and each entry that is in none. True if every lane came to its end.
  /// Cost: O(entries + needs), and a logarithm of the lanes that wait for one at a time.
  template <class Run>
  bool run(Run&& run) {
    for (std::uint32_t lane = lanes_.count(); lane-- > 0;) runnable_.push_back(lane);
    while (!runnable_.empty()) {
      const std::uint32_t lane = runnable_.back();
      runnable_.pop_back();
      go_on(lane, run);
    }
    return std::all_of(heads_.begin(), heads_.end(), [](std::uint32_t head) { return head == kNone; });
  }

  /// Where each lane stopped: a position, or kNone at its end.
  const std::vector<std::uint32_t>& heads() const { return heads_; }
  /// Positions rise along a lane.
  bool has_run(std::uint32_t position) const { return position < heads_[lanes_.lane(position)]; }

 private:
  /// Where a lane sleeps until another has run a position.
  using Sleeper = std::pair<std::uint32_t, std::uint32_t>;

  template <class Run>
  void go_on(std::uint32_t lane, Run& run) {
    for (std::uint32_t head = heads_[lane]; head != kNone; head = heads_[lane]) {
      needs_.fetch_behind(head);
      if (!block_of_.empty() && block_of_[head] != kNone) {
        if (!run_block(lane, head, run)) return;
        continue;
      }
      if (sleeps(lane, head)) return;
      run(std::span<const std::uint32_t>(&head, 1));
      finish(lane, head);
    }
  }

  /// Whether the lane must wait for something that `position`, on it, needs: then it sleeps.
  bool sleeps(std::uint32_t lane, std::uint32_t position) {
    for (const TableNeed& need : needs_[position]) {
      const std::uint32_t its_lane = lanes_.plain() ? need.device : lanes_.lane(need.position);
      if (need.position >= heads_[its_lane]) return sleep(lane, its_lane, need.position), true;
    }
    const std::uint32_t before = lanes_.written_after(position);
    if (before == kNone || has_run(before)) return false;
    return sleep(lane, lanes_.lane(before), before), true;
  }

  /// False if the lane sleeps.
  template <class Run>
  bool run_block(std::uint32_t lane, std::uint32_t head, Run& run) {
    const std::uint32_t block = block_of_[head];
    std::uint32_t here = 0;
    for (std::uint32_t at = head; at != kNone && block_of_[at] == block; at = lanes_.next(at)) {
      if (sleeps(lane, at)) return false;
      ++here;
    }
    const std::span<const std::uint32_t> all = table_.blocks[block];
    arrived_[block] += here;
    if (arrived_[block] < all.size()) return sleep(lane, lane, head), false;
    run(all);
    for (std::uint32_t position : all) finish(lanes_.lane(position), position);
    return true;
  }

  void finish(std::uint32_t lane, std::uint32_t position) {
    heads_[lane] = lanes_.next(position);
    if (position >= awaited_[lane]) wake(lane, position);
  }

  void sleep(std::uint32_t lane, std::uint32_t its_lane, std::uint32_t position) {
    std::vector<Sleeper>& sleepers = sleepers_[its_lane];
    sleepers.push_back({position, lane});
    std::push_heap(sleepers.begin(), sleepers.end(), std::greater<>());
    awaited_[its_lane] = sleepers.front().first;
  }

  /// Those who wait for what has now run.
  void wake(std::uint32_t lane, std::uint32_t position) {
    std::vector<Sleeper>& sleepers = sleepers_[lane];
    while (!sleepers.empty() && sleepers.front().first <= position) {
      runnable_.push_back(sleepers.front().second);
      std::pop_heap(sleepers.begin(), sleepers.end(), std::greater<>());
      sleepers.pop_back();
    }
    awaited_[lane] = sleepers.empty() ? kNone : sleepers.front().first;
  }

  const Table& table_;
  const Lanes& lanes_;
  const TableNeeds& needs_;
  std::vector<std::uint32_t> block_of_;
  /// By block: how many of its entries are at the heads of their lanes with all that they need.
  std::vector<std::uint32_t> arrived_;
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> runnable_;
  /// By lane: the first position that another sleeps for, and all of these, as a heap.
  std::vector<std::uint32_t> awaited_;
  std::vector<std::vector<Sleeper>> sleepers_;
};

/// The order of such a walk: of every block its first position, and each entry that is in none.
using RunOrder = std::vector<std::uint32_t>;

/// None if the table cannot finish: verify_order says why.
std::optional<RunOrder> run_order(const Table& table, const Lanes& lanes, const TableNeeds& needs);

}  // namespace stave
