#include "scheduler/period.h"

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "core/check.h"
#include "core/lanes.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// The waits of a table within an iteration, and those of an iteration on the one before.
class Repeated {
 public:
  Repeated(const Schedule& schedule, const Table& table, const Costs& costs)
      : schedule_(schedule), table_(table), lanes_(table) {
    walk(costs);
    wrap(costs);
  }

  std::optional<Rational> longest_mean() {
    // The work of a lane is such a cycle.
    mean_time_ = 0;
    mean_count_ = 1;
    for (Ticks work : work_) mean_time_ = std::max(mean_time_, Int128(work));
    if (wraps_.empty()) return Rational(0);
    while (improve()) {
    }
    return Rational::make(mean_time_, mean_count_);
  }

 private:
  struct Wait {
    std::uint32_t unit = 0;
    /// Index into lags_: few values, many waits.
    std::uint32_t lag = 0;
  };
  /// `to` starts in the next iteration after `from` has ended in this one.
  struct Wrap {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Ticks setup = 0;
  };

  /// Numbers the units, an entry or a block of them, in an order in which they can run.
  void walk(const Costs& costs) {
    const TableNeeds needs(schedule_, table_);
    unit_of_.assign(table_.size(), kNone);
    work_.assign(lanes_.count(), 0);
    std::map<Ticks, std::uint32_t> numbers;
    const auto lag = [&](Ticks value) {
      const auto [at, added] = numbers.try_emplace(value, static_cast<std::uint32_t>(lags_.size()));
      if (added) lags_.push_back(value);
      return at->second;
    };
    const std::uint32_t none = lag(0);
    TableWalk walk(table_, lanes_, needs);
    const bool finishes = walk.run([&](std::span<const std::uint32_t> block) {
      const auto unit = static_cast<std::uint32_t>(length_.size());
      for (std::uint32_t position : block) unit_of_[position] = unit;
      const auto wait = [&](std::uint32_t at, std::uint32_t number) {
        if (at != kNone && unit_of_[at] != unit) waits_.push_back({unit_of_[at], number});
      };
      length_.push_back(costs.of_block(table_, block));
      std::uint32_t lane = kNone;
      for (std::uint32_t position : block) {
        const std::uint32_t device = table_.device_of(position).value;
        const std::uint32_t previous = lanes_.previous(position);
        wait(previous, previous == kNone ? none : lag(costs.setup(table_, previous, position)));
        wait(lanes_.written_after(position), none);
        needs.for_each(position, [&](std::uint32_t at, std::uint16_t payload) {
          const std::uint32_t there = table_.device_of(at).value;
          wait(at, there == device ? none : lag(costs.message.from(table_.ops, table_.entries[at], payload, there, device)));
        });
        // The two of a pair are on one lane.
        if (lanes_.lane(position) != lane) work_[lanes_.lane(position)] += length_.back();
        lane = lanes_.lane(position);
      }
      first_wait_.push_back(static_cast<std::uint32_t>(waits_.size()));
    });
    STAVE_CHECK(finishes, "the period of a table that cannot finish");
  }

  void wrap(const Costs& costs) {
    std::vector<std::uint32_t> last(lanes_.count(), kNone);
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane)
      for (std::uint32_t at = lanes_.head(lane); at != kNone; at = lanes_.next(at)) last[lane] = at;
    const auto add = [&](std::uint32_t from, std::uint32_t to, Ticks setup) {
      wraps_.push_back({unit_of_[from], unit_of_[to], setup});
    };
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
      const std::uint32_t head = lanes_.head(lane);
      if (head == kNone) continue;
      add(last[lane], head, costs.setup(table_, last[lane], head));
      // What stands before all computing of its device stands after that of the iteration before.
      const std::uint32_t computing = lanes_.device(lane);
      if (computing != lane && lanes_.written_after(head) == kNone && last[computing] != kNone)
        add(last[computing], head, 0);
    }
    if (!lanes_.plain()) wrap_updates();
    targets_.reserve(wraps_.size());
    for (const Wrap& each : wraps_) targets_.push_back(each.to);
    std::sort(targets_.begin(), targets_.end());
    targets_.erase(std::unique(targets_.begin(), targets_.end()), targets_.end());
  }

  /// An update on a lane of its own: the order of the lanes does not say that the next forward waits for it.
  void wrap_updates() {
    for (std::uint32_t d = 0; d < table_.devices(); ++d) {
      std::map<std::uint32_t, std::uint32_t> first_forward;
      const auto is = [&](std::uint32_t position, Operation operation) {
        return table_.ops.kind(table_.entries[position]).operation == operation;
      };
      for (std::uint32_t at = table_.first[d]; at < table_.first[d + 1]; ++at)
        if (is(at, Operation::Forward)) first_forward.try_emplace(table_.ops.stage(table_.entries[at]), at);
      for (std::uint32_t at = table_.first[d]; at < table_.first[d + 1]; ++at) {
        const auto forward = first_forward.find(table_.ops.stage(table_.entries[at]));
        if (!is(at, Operation::Optimizer) || forward == first_forward.end()) continue;
        if (lanes_.lane(at) != lanes_.lane(forward->second))
          wraps_.push_back({unit_of_[at], unit_of_[forward->second], 0});
      }
    }
  }

  /// Looks for a cycle whose mean is larger than the one known, by longest paths under lengths less that mean for each
  /// iteration: as long as one exists, some target is reached by way of itself. False if there is none.
  bool improve() {
    const auto targets = static_cast<std::uint32_t>(targets_.size());
    // Where each path is now, and from which target it came with how long a stretch.
    std::vector<Int128> value(targets, 0);
    std::vector<std::uint32_t> parent(targets, kNone);
    std::vector<Int128> stretch(targets, 0);
    std::vector<std::uint32_t> target_of(length_.size(), kNone);
    for (std::uint32_t t = 0; t < targets; ++t) target_of[targets_[t]] = t;
    std::vector<Int128> start(length_.size());
    std::vector<std::uint32_t> came(length_.size());
    for (;;) {
      for (std::uint32_t unit = 0; unit < length_.size(); ++unit) {
        const std::uint32_t mine = target_of[unit];
        // A unit that waits for nothing, and begins no lane, starts at once: no cycle passes through it.
        Int128 best = mine == kNone ? kNever : value[mine];
        std::uint32_t from = mine;
        for (std::uint32_t k = first_wait_[unit]; k < first_wait_[unit + 1]; ++k) {
          const std::uint32_t before = waits_[k].unit;
          if (came[before] == kNone) continue;
          const Int128 time = start[before] + mean_count_ * (Int128(length_[before]) + lags_[waits_[k].lag]);
          if (time > best) {
            best = time;
            from = came[before];
          }
        }
        start[unit] = best;
        came[unit] = from;
      }
      bool changed = false;
      std::vector<Int128> next = value;
      for (const Wrap& each : wraps_) {
        if (came[each.from] == kNone) continue;
        const std::uint32_t to = target_of[each.to];
        const Int128 time = start[each.from] + mean_count_ * (Int128(length_[each.from]) + each.setup);
        if (time - mean_time_ <= next[to]) continue;
        next[to] = time - mean_time_;
        parent[to] = came[each.from];
        stretch[to] = (time - value[came[each.from]]) / mean_count_;
        changed = true;
      }
      if (!changed) return false;
      value = std::move(next);
      if (found_cycle(parent, stretch)) return true;
    }
  }

  bool found_cycle(const std::vector<std::uint32_t>& parent, const std::vector<Int128>& stretch) {
    std::vector<std::uint32_t> seen(parent.size(), kNone);
    for (std::uint32_t begin = 0; begin < parent.size(); ++begin) {
      std::uint32_t at = begin;
      while (at != kNone && seen[at] == kNone) {
        seen[at] = begin;
        at = parent[at];
      }
      if (at == kNone || seen[at] != begin) continue;
      Int128 time = 0;
      Int128 count = 0;
      std::uint32_t on = at;
      do {
        time += stretch[on];
        ++count;
        on = parent[on];
      } while (on != at);
      if (time * mean_count_ <= mean_time_ * count) continue;
      mean_time_ = time;
      mean_count_ = count;
      return true;
    }
    return false;
  }

  static constexpr Int128 kNever = -(Int128(1) << 120);

  const Schedule& schedule_;
  const Table& table_;
  const Lanes lanes_;
  std::vector<std::uint32_t> unit_of_;
  std::vector<Ticks> length_;
  std::vector<std::uint32_t> first_wait_ = {0};
  std::vector<Wait> waits_;
  std::vector<Ticks> lags_;
  std::vector<Ticks> work_;
  std::vector<Wrap> wraps_;
  /// The units that begin a lane, or wait for the iteration before; rising.
  std::vector<std::uint32_t> targets_;
  /// The largest mean known: time over the iterations it spans.
  Int128 mean_time_ = 0;
  Int128 mean_count_ = 1;
};

}  // namespace

std::optional<Rational> period(const Schedule& schedule, const Table& table, const Costs& costs) {
  return Repeated(schedule, table, costs).longest_mean();
}

}  // namespace stave
