// StraightLine: a table compiled into one sequence of additions and maxima, to be priced under one set of costs after
// another. It knows ends and nothing else: start times are start_times.h's, what a device waits for is simulate.h's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/schedule.h"
#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "core/table.h"
#include "scheduler/costs.h"

namespace stave {

/// One step of a lane whose clock is t: t = max(t, slot[read]) + cost[cost]; slot[write] = t + message[message].
/// Slot 0 is always 0, and nobody reads slot 1.
template <class Number>
struct LaneStep {
  Number cost = 0;
  Number message = 0;
  Number read = 0;
  Number write = 1;
};

/// As Report has them.
struct Price {
  Ticks makespan = 0;
  Ticks span = 0;
  friend bool operator==(const Price&, const Price&) = default;
};

class StraightLine {
 public:
  /// `table` must have passed verify. Costs are told apart by what `costs` depend on.
  /// Cost: O(entries + needs), about 30 ns an entry.
  /// `needs` and `order` are those of the table; without them they are found.
  StraightLine(const Table& table, const TableNeeds& needs, const RunOrder& order, const Costs& costs);
  StraightLine(const Schedule& schedule, const Table& table, const Costs& costs);

  /// The price under `costs`, whose durations must depend on the same indices as those it was made with.
  /// Cost: some 2 ns an entry.
  Price price(const Costs& costs) const;
  /// That under each of `costs`. Sixteen are priced at once, with the vector unit of this processor, where every time is
  /// below 2^53 ticks. Cost: some 0.3 ns an entry and set.
  std::vector<Price> price(std::span<const Costs> costs) const;

  /// Steps of all lanes, and bytes that they take.
  std::size_t steps() const { return narrow_.size() + wide_.size(); }
  std::size_t bytes() const { return narrow_.size() * sizeof(LaneStep<std::uint16_t>) + wide_.size() * sizeof(LaneStep<std::uint32_t>); }

  /// A stretch of steps on one lane.
  struct Run {
    std::uint32_t lane = 0;
    std::uint32_t count = 0;
  };
  /// The costs in the order of their classes. Shape: [class].
  std::vector<Ticks> classes(const Costs& costs) const;
  std::vector<Ticks> messages(const Costs& costs) const;

 private:
  friend class StraightLineMaker;
  StraightLine() = default;

  struct Link {
    std::uint16_t payload = 0;
    std::uint32_t source = 0;
    std::uint32_t target = 0;
    std::uint32_t size = 0;
  };
  Price price_of(std::span<const Ticks> slots) const;
  template <class Number>
  Price one(const std::vector<LaneStep<Number>>& steps, const Costs& costs) const;
  template <class Number>
  void sixteen(const std::vector<LaneStep<Number>>& steps, std::span<const Costs> costs, Price* prices) const;

  /// The last ones first, as they are made.
  std::vector<Run> runs_;
  /// As well. One of them is empty: steps are narrow where all numbers fit.
  std::vector<LaneStep<std::uint16_t>> narrow_;
  std::vector<LaneStep<std::uint32_t>> wide_;
  std::uint32_t slots_ = 2;
  std::uint32_t lanes_ = 0;
  std::uint32_t devices_ = 0;
  /// Of the messages that steps send, from class 1 on; class 0 takes no time.
  std::vector<Link> links_;
  /// Number of values of each kind, of pairs, of sizes of messages and of setups, to refuse costs of another shape.
  std::vector<std::size_t> shape_;
  /// Device of every lane that has an op that counts, and the slots of its first start and its last end.
  struct Ends {
    std::uint32_t device = 0;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  std::vector<Ends> ends_;
};

}  // namespace stave
