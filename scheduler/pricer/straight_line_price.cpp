// The prices of a StraightLine: one set of costs in whole ticks, or sixteen at once in the vector unit.
#include <algorithm>
#include <array>
#include <limits>

#include "scheduler/pricer/straight_line.h"

namespace stave {

namespace {

/// Sets of costs priced at once.
constexpr std::size_t kSets = 16;
/// Below this a double holds every whole number.
constexpr Ticks kExact = Ticks(1) << 53;

/// Four doubles, of which the compiler makes what the processor has.
typedef double Four __attribute__((vector_size(32)));
struct alignas(64) Sixteen {
  Four part[4];
};

/// What `sixteen_at_once` works on. Shapes: costs[class], messages[class], slots[slot], clocks[lane].
struct Board {
  const Sixteen* costs = nullptr;
  const Sixteen* messages = nullptr;
  Sixteen* slots = nullptr;
  Sixteen* clocks = nullptr;
};

/// The last runs and steps stand first: `step` is behind the last one in memory, which is the first in time.
template <class Number>
__attribute__((always_inline)) inline void sixteen_at_once(std::span<const StraightLine::Run> runs,
                                                           const LaneStep<Number>* step, const Board& board) {
  for (std::size_t r = runs.size(); r-- > 0;) {
    const StraightLine::Run& run = runs[r];
    Sixteen clock = board.clocks[run.lane];
    for (const LaneStep<Number>* const end = step - run.count; step != end;) {
      --step;
      const Sixteen& read = board.slots[step->read];
      const Sixteen& cost = board.costs[step->cost];
      const Sixteen& message = board.messages[step->message];
      Sixteen& write = board.slots[step->write];
      for (int i = 0; i < 4; ++i) {
        clock.part[i] = (clock.part[i] > read.part[i] ? clock.part[i] : read.part[i]) + cost.part[i];
        write.part[i] = clock.part[i] + message.part[i];
      }
    }
    board.clocks[run.lane] = clock;
  }
}

template <class Number>
using Kernel = void (*)(std::span<const StraightLine::Run>, const LaneStep<Number>*, const Board&);

template <class Number>
void plain_kernel(std::span<const StraightLine::Run> runs, const LaneStep<Number>* steps, const Board& board) {
  sixteen_at_once(runs, steps, board);
}

#if defined(__x86_64__)
template <class Number>
__attribute__((target("avx2"))) void avx2_kernel(std::span<const StraightLine::Run> runs, const LaneStep<Number>* steps,
                                                 const Board& board) {
  sixteen_at_once(runs, steps, board);
}
template <class Number>
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw"))) void avx512_kernel(
    std::span<const StraightLine::Run> runs, const LaneStep<Number>* steps, const Board& board) {
  sixteen_at_once(runs, steps, board);
}
#endif

template <class Number>
Kernel<Number> best_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return avx512_kernel<Number>;
  if (__builtin_cpu_supports("avx2")) return avx2_kernel<Number>;
#endif
  return plain_kernel<Number>;
}

/// values[class] of each set, side by side. Shape: [class].
std::vector<Sixteen> side_by_side(const std::array<std::vector<Ticks>, kSets>& sets) {
  std::vector<Sixteen> result(sets[0].size());
  for (std::size_t c = 0; c < result.size(); ++c)
    for (std::size_t i = 0; i < kSets; ++i) result[c].part[i / 4][i % 4] = static_cast<double>(sets[i][c]);
  return result;
}

}  // namespace

Price StraightLine::price_of(std::span<const Ticks> slots) const {
  Price result;
  std::vector<Ticks> first(devices_, std::numeric_limits<Ticks>::max());
  std::vector<Ticks> last(devices_, 0);
  for (const Ends& ends : ends_) {
    first[ends.device] = std::min(first[ends.device], slots[ends.first]);
    last[ends.device] = std::max(last[ends.device], slots[ends.last]);
    result.makespan = std::max(result.makespan, slots[ends.last]);
  }
  for (std::uint32_t d = 0; d < devices_; ++d)
    if (first[d] <= last[d]) result.span = std::max(result.span, last[d] - first[d]);
  return result;
}

template <class Number>
Price StraightLine::one(const std::vector<LaneStep<Number>>& steps, const Costs& costs) const {
  const std::vector<Ticks> cost = classes(costs);
  const std::vector<Ticks> message = messages(costs);
  std::vector<Ticks> slots(slots_, 0);
  std::vector<Ticks> clocks(lanes_, 0);
  const LaneStep<Number>* step = steps.data() + steps.size();
  for (std::size_t i = runs_.size(); i-- > 0;) {
    const Run& run = runs_[i];
    Ticks clock = clocks[run.lane];
    for (const LaneStep<Number>* const end = step - run.count; step != end;) {
      --step;
      clock = std::max(clock, slots[step->read]) + cost[step->cost];
      slots[step->write] = clock + message[step->message];
    }
    clocks[run.lane] = clock;
  }
  return price_of(slots);
}

template <class Number>
void StraightLine::sixteen(const std::vector<LaneStep<Number>>& steps, std::span<const Costs> costs, Price* prices) const {
  std::array<std::vector<Ticks>, kSets> cost;
  std::array<std::vector<Ticks>, kSets> message;
  for (std::size_t i = 0; i < kSets; ++i) {
    cost[i] = classes(costs[std::min(i, costs.size() - 1)]);
    message[i] = messages(costs[std::min(i, costs.size() - 1)]);
  }
  const std::vector<Sixteen> costs_side = side_by_side(cost);
  const std::vector<Sixteen> messages_side = side_by_side(message);
  std::vector<Sixteen> slots(slots_, Sixteen{});
  std::vector<Sixteen> clocks(lanes_, Sixteen{});
  best_kernel<Number>()(runs_, steps.data() + steps.size(), {costs_side.data(), messages_side.data(), slots.data(), clocks.data()});
  std::vector<Ticks> mine(slots_);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    bool exact = true;
    for (std::uint32_t slot = 0; slot < slots_; ++slot) {
      const double value = slots[slot].part[i / 4][i % 4];
      exact = exact && value < static_cast<double>(kExact);
      mine[slot] = exact ? static_cast<Ticks>(value) : 0;
    }
    prices[i] = exact ? price_of(mine) : one(steps, costs[i]);
  }
}

Price StraightLine::price(const Costs& costs) const {
  return narrow_.empty() ? one(wide_, costs) : one(narrow_, costs);
}

std::vector<Price> StraightLine::price(std::span<const Costs> costs) const {
  std::vector<Price> result(costs.size());
  for (std::size_t i = 0; i < costs.size(); i += kSets) {
    const std::span<const Costs> some = costs.subspan(i, std::min(kSets, costs.size() - i));
    if (narrow_.empty())
      sixteen(wide_, some, &result[i]);
    else
      sixteen(narrow_, some, &result[i]);
  }
  return result;
}

}  // namespace stave
