#include "scheduler/start_times.h"

#include <algorithm>

#include "core/check.h"
#include "core/fetch.h"
#include "core/lanes.h"

namespace stave {

namespace {

/// How many entries ahead of their turn memory is fetched: those that follow each other in time lie far apart.
constexpr std::size_t kAhead = 16;

class StartTimes {
 public:
  StartTimes(const Table& table, const Lanes& lanes, const TableNeeds& needs, const Costs& costs)
      : table_(table), lanes_(lanes), needs_(needs), costs_(costs), block_of_(blocks_of(table)) {
    times_.message = costs.message;
    times_.start.resize(table.size());
    times_.end.resize(table.size());
  }

  Starts along(const RunOrder& order) {
    // One lane a device, no blocks and no setups: nearly all tables are so.
    const bool plain = lanes_.plain() && block_of_.empty() && costs_.setups.empty();
    if (plain) free_at_.assign(table_.devices(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + 2 * kAhead < order.size()) fetch_before(order[i + 2 * kAhead], order[i + kAhead]);
      const std::uint32_t position = order[i];
      std::span<const std::uint32_t> block(&position, 1);
      if (plain)
        run_alone(position);
      else
        run(block_of_.empty() || block_of_[position] == UINT32_MAX ? block : table_.blocks[block_of_[position]]);
    }
    return std::move(times_);
  }

 private:
  void fetch_before(std::uint32_t later, std::uint32_t sooner) const {
    fetch(needs_.rows().first, later);
    fetch(table_.entries, later);
    fetch(times_.start, later);
    fetch(times_.end, later);
    fetch(needs_[sooner].data());
  }

  Ticks message(const TableNeed& need, std::uint32_t target) const {
    return costs_.message.from(table_.ops, table_.entries[need.position], need.payload, need.device, target);
  }

  void run_alone(std::uint32_t position) {
    const std::uint32_t device = lanes_.device_at(position);
    Ticks ready = free_at_[device];
    for (const TableNeed& need : needs_[position]) {
      if (need.device == device) continue;
      ready = std::max(ready, times_.end[need.position] + message(need, device));
    }
    times_.start[position] = ready;
    times_.end[position] = free_at_[device] = ready + costs_.of(table_.ops, table_.entries[position]);
  }

  void run(std::span<const std::uint32_t> block) {
    Ticks ready = 0;
    for (const std::uint32_t position : block) {
      const std::uint32_t d = lanes_.device_at(position);
      // The first of a pair does not end before the other starts.
      if (const std::uint32_t before = lanes_.previous(position); before != Lanes::kNone && before != block[0])
        ready = std::max(ready, times_.end[before] + costs_.setup(table_, before, position));
      if (const std::uint32_t before = lanes_.written_after(position); before != Lanes::kNone)
        ready = std::max(ready, times_.end[before]);
      for (const TableNeed& need : needs_[position]) {
        // It ended long before the entry that stands before this one, and its end is far away in memory.
        if (need.device == d && lanes_.plain()) continue;
        Ticks sent = times_.end[need.position];
        if (need.device != d) sent += message(need, d);
        ready = std::max(ready, sent);
      }
    }
    const Ticks end = ready + costs_.of_block(table_, block);
    for (const std::uint32_t position : block) {
      times_.start[position] = ready;
      times_.end[position] = end;
    }
  }

  const Table& table_;
  const Lanes& lanes_;
  const TableNeeds& needs_;
  const Costs& costs_;
  const std::vector<std::uint32_t> block_of_;
  Starts times_;
  /// By device, where an entry is all that runs at a time: the end of the last one.
  std::vector<Ticks> free_at_;
};

}  // namespace

Starts start_times(const Table& table, const TableNeeds& needs, const RunOrder& order, const Costs& costs) {
  const Lanes lanes(table);
  return StartTimes(table, lanes, needs, costs).along(order);
}

Starts start_times(const Schedule& schedule, const Table& table, const Costs& costs) {
  const TableNeeds needs(schedule, table);
  const Lanes lanes(table);
  const std::optional<RunOrder> order = run_order(table, lanes, needs);
  STAVE_CHECK(order, "start times of a table that cannot finish");
  return StartTimes(table, lanes, needs, costs).along(*order);
}

}  // namespace stave
