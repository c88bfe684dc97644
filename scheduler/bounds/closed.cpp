#include "scheduler/bounds/closed.h"

#include <algorithm>
#include <numeric>

#include "compiler/rational.h"
#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "core/lanes.h"
#include "scheduler/bounds/jackson.h"
#include "scheduler/limit_sizes.h"

namespace stave::bounds {

namespace {

class Forms {
 public:
  Forms(const Schedule& schedule, const Table& table, const Costs& costs)
      : schedule_(schedule), table_(table), costs_(costs), needs_(schedule, table), lanes_(table) {
    for (std::uint32_t d = 0; d < table.devices(); ++d)
      device_.insert(device_.end(), table.first[d + 1] - table.first[d], static_cast<std::uint16_t>(d));
    walk_heads();
    walk_tails();
  }

  Closed all() const {
    Closed result;
    result.span.assign(table_.devices(), 0);
    for (std::uint32_t position = 0; position < table_.size(); ++position)
      if (matters_[position])
        result.makespan = std::max(result.makespan, head_[position] + length_[position] + tail_[position]);
    std::vector<Job> jobs;
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
      jobs.clear();
      Ticks work = 0;
      for (std::uint32_t at = lanes_.head(lane); at != Lanes::kNone; at = lanes_.next(at)) {
        if (!matters_[at] || !leads(at)) continue;
        jobs.push_back({head_[at], length_[at], tail_[at]});
        if (counts(at)) work += length_[at];
      }
      Ticks& span = result.span[lanes_.device(lane)];
      span = std::max(span, work);
      result.makespan = std::max({result.makespan, work, jackson(jobs)});
    }
    // A stream beside the computing may give back at any time.
    if (!lanes_.plain()) return result;
    for (const LimitSizes& sizes : limit_sizes(schedule_))
      for (std::uint32_t d = 0; d < table_.devices(); ++d)
        result.makespan = std::max(result.makespan, first_taking_none(d, sizes));
    return result;
  }

 private:
  bool counts(std::uint32_t position) const { return !table_.ops.kind(table_.entries[position]).optional; }
  Ticks lag(std::uint32_t from, std::uint32_t to, std::uint16_t payload) const {
    return device_[from] == device_[to] ? 0 : costs_.message.from(table_.ops, table_.entries[from], payload, device_[from], device_[to]);
  }

  /// Of a block's entries on one lane the first.
  bool leads(std::uint32_t position) const {
    const std::uint32_t before = lanes_.previous(position);
    return block_of_.empty() || block_of_[position] == UINT32_MAX || before == Lanes::kNone ||
           block_of_[before] != block_of_[position];
  }

  void walk_heads() {
    head_.assign(table_.size(), 0);
    length_.assign(table_.size(), 0);
    block_of_ = blocks_of(table_);
    order_.reserve(table_.size());
    TableWalk walk(table_, lanes_, needs_);
    walk.run([&](std::span<const std::uint32_t> block) {
      Ticks head = 0;
      for (std::uint32_t position : block) {
        needs_.for_each(position, [&](std::uint32_t at, std::uint16_t payload) {
          head = std::max(head, head_[at] + length_[at] + lag(at, position, payload));
        });
      }
      const Ticks length = costs_.of_block(table_, block);
      for (std::uint32_t position : block) {
        head_[position] = head;
        length_[position] = length;
        order_.push_back(position);
      }
    });
  }

  void walk_tails() {
    tail_.assign(table_.size(), 0);
    matters_.assign(table_.size(), false);
    for (std::size_t end = order_.size(); end > 0;) {
      std::size_t begin = end - 1;
      const std::uint32_t block = block_of_.empty() ? UINT32_MAX : block_of_[order_[begin]];
      if (block != UINT32_MAX)
        while (begin > 0 && block_of_[order_[begin - 1]] == block) --begin;
      Ticks tail = 0;
      bool matters = false;
      for (std::size_t i = begin; i < end; ++i) {
        tail = std::max(tail, tail_[order_[i]]);
        matters = matters || matters_[order_[i]] || counts(order_[i]);
      }
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t position = order_[i];
        tail_[position] = tail;
        matters_[position] = matters;
        if (!matters) continue;
        needs_.for_each(position, [&](std::uint32_t at, std::uint16_t payload) {
          tail_[at] = std::max(tail_[at], lag(at, position, payload) + length_[position] + tail);
          matters_[at] = true;
        });
      }
      end = begin;
    }
  }

  struct Taker {
    Ticks length = 0;
    Int128 size = 0;
  };

  /// Before the first op that takes nothing, no op has given anything back, so no more is done than fits at once.
  Ticks first_taking_none(std::uint32_t device, const LimitSizes& sizes) const {
    if (!sizes.most[device]) return 0;
    Int128 most = *sizes.most[device];
    std::vector<Taker> takers;
    Ticks work = 0;
    Ticks head = INT64_MAX;
    Ticks tail = INT64_MAX;
    for (std::uint32_t at = table_.first[device]; at < table_.first[device + 1]; ++at) {
      // What is left out may make room at any time.
      if (!matters_[at] && sizes.given_by(table_.ops, table_.entries[at]) > 0) return 0;
      if (!matters_[at] || !leads(at)) continue;
      Int128 taken = 0;
      bool given = false;
      for (std::uint32_t each = at; each < table_.first[device + 1] && (each == at || !leads(each)); ++each) {
        taken += sizes.taken_by(table_.ops, table_.entries[each]);
        given = given || sizes.given_by(table_.ops, table_.entries[each]) > 0;
      }
      work += length_[at];
      tail = std::min(tail, tail_[at]);
      if (taken > 0 && !given)
        takers.push_back({length_[at], taken});
      else
        head = std::min(head, head_[at]);
    }
    if (head == INT64_MAX) return 0;
    std::sort(takers.begin(), takers.end(),
              [](const Taker& a, const Taker& b) { return a.length * b.size > b.length * a.size; });
    Int128 done = 0;
    for (const Taker& each : takers) {
      if (most <= 0) break;
      // The last one in part, rounded up.
      done += each.size <= most ? Int128(each.length) : (each.length * most + each.size - 1) / each.size;
      most -= each.size;
    }
    return done >= work ? head + tail : static_cast<Ticks>(head + (work - done) + tail);
  }

  const Schedule& schedule_;
  const Table& table_;
  const Costs& costs_;
  const TableNeeds needs_;
  const Lanes lanes_;
  std::vector<std::uint16_t> device_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::uint32_t> order_;
  std::vector<Ticks> head_;
  std::vector<Ticks> tail_;
  std::vector<Ticks> length_;
  /// It counts, or one that counts waits for it.
  std::vector<bool> matters_;
};

}  // namespace

Closed closed_forms(const Schedule& schedule, const Table& table, const Costs& costs) {
  return Forms(schedule, table, costs).all();
}

}  // namespace stave::bounds
