// The critical path and the slack where messages take turns on links, and devices send themselves.
#include "scheduler/contention/turns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "scheduler/contention/sharing.h"
#include "scheduler/contention/simulate_shared.h"
#include "scheduler/critical_path.h"
#include "tests/property/random_contention.h"
#include "tests/property/random_tables.h"

namespace stave {
namespace {

// What has its link for no time keeps none waiting on it.
std::vector<Ticks> lengths_that_move(test::RandomTables& random, const Program& program, const Contention& contention) {
  std::vector<Ticks> result(program.nodes());
  for (std::uint32_t node = 0; node < program.nodes(); ++node)
    result[node] = program.is_message(NodeId(node))
                       ? contention.latency[program.message(NodeId(node)).edge.value] + random.upto(1, 6)
                       : random.upto(0, 6);
  return result;
}

Ticks makespan_of(const Program& program, const Timeline& times) {
  Ticks result = 0;
  for (std::uint32_t position = 0; position < program.table.size(); ++position)
    result = std::max(result, times.end[position]);
  return result;
}

/// Of each link, the messages in the order in which they had it.
std::vector<std::vector<std::uint32_t>> in_turn(const Program& program, const Timeline& times,
                                                const Contention& contention) {
  std::vector<std::vector<std::uint32_t>> result(contention.links);
  for (std::uint32_t node = program.table.size(); node < program.nodes(); ++node)
    for (std::uint32_t link : contention.links_of_edge[program.message(NodeId(node)).edge.value])
      result[link].push_back(node);
  for (std::vector<std::uint32_t>& each : result)
    std::ranges::stable_sort(each, {}, [&](std::uint32_t node) { return times.start[node]; });
  return result;
}

TEST_CASE("with contention the critical path leaves out no time; what has slack may take it, and no more") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  test::RandomTables random(seed);
  int with_slack = 0, in_other_turns = 0, with_turns = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const Schedule schedule = random.schedule();
    const Program program = test::program_of(schedule, random.legal(schedule));
    Contention contention = test::random_contention(random, program);
    // A slow-down makes an op longer by what it is moved beside.
    contention.slowdown.clear();
    SimulationRules rules;
    rules.links = std::vector{Sharing::Own, Sharing::FirstCome}[random.upto(0, 1)];
    rules.blocking = random.upto(0, 2) == 0;
    rules.rendezvous = !rules.blocking && random.upto(0, 1) == 0;
    CAPTURE(rules.blocking);
    CAPTURE(rules.rendezvous);
    const Costs costs = test::costs_of(schedule);
    std::vector<Ticks> lengths = lengths_that_move(random, program, contention);
    const Timeline times = simulate_shared(program, lengths, costs, rules, contention);
    const Turns turns(program, times, rules, contention);
    with_turns += !turns.empty();
    const CriticalPath path = critical_path(program, times, costs, turns);
    CHECK(path.waiting == 0);
    const std::vector<Ticks> spare = slack(program, times, costs, turns);
    for (NodeId node : path.nodes) CHECK(spare[node.value] == 0);
    const std::uint32_t at = random.upto(0, program.table.size() - 1);
    const Ticks makespan = makespan_of(program, times);
    CHECK(spare[at] >= 0);
    CHECK(spare[at] <= makespan);
    const auto longer_by = [&](Ticks by) {
      std::vector<Ticks> changed = lengths;
      changed[at] += by;
      const Timeline result = simulate_shared(program, changed, costs, rules, contention);
      if (in_turn(program, result, contention) == in_turn(program, times, contention))
        CHECK(makespan_of(program, result) == makespan + (by > spare[at] ? by - spare[at] : 0));
      else
        ++in_other_turns;
    };
    longer_by(spare[at]);
    longer_by(spare[at] + 1);
    with_slack += spare[at] > 0;
  }
  CHECK(with_slack > 40);
  CHECK(with_turns > 100);
  CHECK(in_other_turns < 200);
}

}  // namespace
}  // namespace stave
