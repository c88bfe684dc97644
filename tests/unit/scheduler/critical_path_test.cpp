// The critical path and the slack, on tables small enough to check by hand and on random ones.
#include "scheduler/critical_path.h"

#include <algorithm>
#include <random>
#include <vector>

#include "compiler/lower.h"
#include "doctest/doctest.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"
#include "tests/unit/support/costs.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

struct Run {
  Costs costs;
  Program program;
  Timeline times;
  Ticks makespan = 0;
};

Run run(const Schedule& schedule, const Table& table) {
  Run result{test::costs_of(schedule), {}, {}, 0};
  result.program = lower(schedule, table, start_times(schedule, table, result.costs));
  result.times = simulate(result.program, result.costs);
  for (std::uint32_t i = 0; i < table.size(); ++i) result.makespan = std::max(result.makespan, result.times.end[i]);
  return result;
}

/// Sums of all three accounts.
void check_sums(const CriticalPath& path, Ticks makespan) {
  Ticks kinds = path.waiting, places = path.waiting;
  std::uint32_t nodes = 0;
  for (const KindBlame& each : path.kinds) {
    kinds += each.time;
    nodes += each.count;
  }
  for (const StageBlame& each : path.stages) places += each.time;
  for (const LinkBlame& each : path.links) places += each.time;
  CHECK(kinds == makespan);
  CHECK(places == makespan);
  CHECK(nodes == path.nodes.size());
}

}  // namespace

TEST_CASE("GPipe on two devices with messages: the path by hand") {
  //   device 0: F0 0-1, F1 1-2, B0 7-9, B1 9-11.  device 1: F0 2-3, F1 3-4, B0 4-6, B1 6-8; message 1.
  const Schedule schedule = test::training(2, 1, 2, {.message = 1});
  const Table table = test::gpipe(schedule);
  const Run priced = run(schedule, table);
  const CriticalPath path = critical_path(priced.program, priced.times, priced.costs);
  check_sums(path, 11);
  CHECK(path.waiting == 0);
  // F0 on 0, its message, F0 F1 B0 on 1, a message, B0 B1 on 0.
  REQUIRE(path.nodes.size() == 8);
  CHECK(path.nodes[0] == NodeId(0));
  CHECK(path.nodes[7] == NodeId(3));
  REQUIRE(path.kinds.size() == 3);
  CHECK(path.kinds[0].name == "F");
  CHECK(path.kinds[0].time == 3);
  CHECK(path.kinds[1].name == "B");
  CHECK(path.kinds[1].time == 6);
  CHECK(path.kinds[2].name == "message");
  CHECK(path.kinds[2].time == 2);
  REQUIRE(path.links.size() == 2);
  CHECK(path.links[0].source == DeviceId(0));
  // F1 on 0 may end at 2, its message at 3 where it arrives at 3: it ends when F0 on 1 does.
  const std::vector<Ticks> spare = slack(priced.program, priced.times, priced.costs);
  CHECK(spare[0] == 0);
  CHECK(spare[1] == 0);
  CHECK(spare[2] == 0);
  // The last backward of device 1 with its message: 8 + 1 before 9.
  CHECK(spare[7] == 0);
}

TEST_CASE("random tables: sums are exact; what has slack may take it, and no more") {
  int with_slack = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    Schedule schedule = test::training(1 + below(4), 1 + below(2), 1 + below(5),
                                       {.f = below(4), .i = below(3), .w = 1 + below(3), .message = below(4)});
    Run priced = run(schedule, test::random_table(schedule, seed));
    // Other costs than those it was lowered with: slots and edges may hold things up now.
    if (seed % 2 == 1) {
      test::set_costs(schedule, {.f = below(4), .i = below(3), .w = below(3), .message = below(9)});
      if (seed % 4 == 1) test::set_link_costs(schedule, 1, [&] { return below(9); });
      if (seed % 4 == 2) schedule.costs.message = test::sized_message_costs<Rational>(schedule, [&] { return below(9); });
      priced.costs = test::costs_of(schedule);
      priced.times = simulate(priced.program, priced.costs);
      priced.makespan = 0;
      for (std::uint32_t i = 0; i < priced.program.table.size(); ++i)
        priced.makespan = std::max(priced.makespan, priced.times.end[i]);
    }
    const CriticalPath path = critical_path(priced.program, priced.times, priced.costs);
    check_sums(path, priced.makespan);
    CHECK(path.waiting == 0);
    const std::vector<Ticks> spare = slack(priced.program, priced.times, priced.costs);
    for (NodeId node : path.nodes) CHECK(spare[node.value] == 0);
    // One op longer by its slack: the same makespan; by one more: one later.
    const std::uint32_t at = below(priced.program.table.size());
    CHECK(spare[at] >= 0);
    with_slack += spare[at] > 0;
    const auto longer = [&](Ticks by) {
      Costs costs = priced.costs;
      const OpId op = priced.program.table.entries[at];
      const KindId kind = priced.program.table.ops.kind_of(op);
      const OpName name = priced.program.table.ops.name(op);
      KindTicks each;
      each.stride = {schedule.microbatches, 1, 0, 0};
      each.values.assign(std::size_t(schedule.stages) * schedule.microbatches, costs.kinds[kind].values[0]);
      each.values[each.at(name)] += by;
      costs.kinds[kind] = each;
      const Timeline times = simulate(priced.program, costs);
      Ticks makespan = 0;
      for (std::uint32_t i = 0; i < priced.program.table.size(); ++i) makespan = std::max(makespan, times.end[i]);
      return makespan;
    };
    CHECK(longer(spare[at]) == priced.makespan);
    CHECK(longer(spare[at] + 1) == priced.makespan + 1);
  }
  CHECK(with_slack > 20);
}

}  // namespace stave
