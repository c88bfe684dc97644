// The period of a table, against itself run many times.
#include "scheduler/period.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "compiler/lower.h"
#include "doctest/doctest.h"
#include "scheduler/analysis.h"
#include "scheduler/bounds/instance.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"
#include "tests/unit/support/costs.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

/// End of each of `iterations`, every device beginning one as soon as it has ended the one before. All ops take time.
std::vector<Ticks> repeat(const Schedule& schedule, const Table& table, int iterations) {
  const Costs costs = test::costs_of(schedule);
  const Starts once = start_times(schedule, table, costs);
  std::vector<std::uint32_t> order(table.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return once.start[a] < once.start[b]; });
  // Each entry of a table without blocks and without optional ops is a unit, under the same number.
  const bounds::Instance data = bounds::make_instance(schedule, table, costs, bounds::Alike::No);
  std::vector<Ticks> now(schedule.devices, 0);
  std::vector<Ticks> result;
  for (int i = 0; i < iterations; ++i) {
    std::vector<Ticks> end(table.size(), 0);
    for (std::uint32_t position : order) {
      Ticks start = now[table.device_of(position).value];
      for (const bounds::Arc& arc : data.arcs)
        if (arc.to == position) start = std::max(start, end[arc.from] + arc.lag);
      end[position] = now[table.device_of(position).value] = start + data.length[position];
    }
    result.push_back(*std::max_element(end.begin(), end.end()));
  }
  return result;
}

Rational period_of(const Schedule& schedule, const Table& table) {
  const std::optional<Rational> result = period(schedule, table, test::costs_of(schedule));
  REQUIRE(result);
  return *result;
}

}  // namespace

TEST_CASE("one device: the period is its work; nothing takes time: it is 0") {
  const Schedule one = test::training(1, 2, 3);
  CHECK(period_of(one, test::gpipe(test::training(1, 1, 3))) == Rational(9));
  const Schedule free = test::training(2, 1, 2, {0, 0, 0, 0});
  CHECK(period_of(free, test::gpipe(free)) == Rational(0));
}

TEST_CASE("1F1B and GPipe without a barrier: a device waits for its own last backward, so nothing overlaps") {
  // Device 0 starts again when its last backward has ended, device P - 1 P - 1 backwards before it: M + P - 1 slots.
  const Schedule schedule = test::training(4, 1, 8);
  CHECK(period_of(schedule, test::one_f_one_b(schedule)) == Rational(33));
  CHECK(period_of(schedule, test::gpipe(schedule)) == Rational(33));
}

TEST_CASE("random tables: equal to the time of an iteration far on, at least the load, at most the longest span") {
  int above_load = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    Schedule schedule = test::training(
        1 + below(3), 1 + below(2), 1 + below(4),
        {.f = 1 + below(4), .i = 1 + below(3), .w = 1 + below(3), .message = below(6)});
    if (seed % 3 == 1) schedule.costs.message = test::sized_message_costs<Rational>(schedule, [&] { return below(6); });
    const Table table = test::random_table(schedule, seed);
    const Rational found = period_of(schedule, table);
    // Cycles of at most 3 devices: after a while everything repeats each 6 iterations.
    const std::vector<Ticks> ends = repeat(schedule, table, 127);
    CHECK(Rational(ends[126] - ends[120]) == *multiply(found, 6));
    const Costs costs = test::costs_of(schedule);
    const Program program = lower(schedule, table, start_times(schedule, table, costs));
    const Report report = analyse(schedule, program, simulate(program, costs));
    Ticks load = 0;
    for (const DeviceReport& device : report.devices) load = std::max(load, device.busy);
    CHECK(found >= Rational(load));
    CHECK(found <= Rational(report.span));
    above_load += found > Rational(load);
  }
  CHECK(above_load > 5);
}

}  // namespace stave
