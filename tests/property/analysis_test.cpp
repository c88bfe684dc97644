// What must hold of the analyses on every schedule of the library, under costs of many kinds.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/analysis.h"
#include "scheduler/critical_path.h"
#include "scheduler/period.h"
#include "scheduler/simulate.h"
#include "tests/property/lowered.h"

namespace stave {
namespace {

std::vector<std::filesystem::path> library() {
  std::vector<std::filesystem::path> result;
  for (const auto& entry : std::filesystem::directory_iterator(STAVE_SOURCE_DIR "/schedules"))
    if (entry.path().extension() == ".sched") result.push_back(entry.path());
  std::sort(result.begin(), result.end());
  return result;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Other costs: of every stage its own, of messages too.
void disturb(Schedule& schedule, std::mt19937& random) {
  const auto upto = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (IndexedValues& kind : schedule.costs.duration)
    for (Rational& value : kind.values) value = upto(0, 9);
  for (PairCost& pair : schedule.costs.pairs) pair.duration = upto(1, 12);
  schedule.costs.message.assign(schedule.payloads.size(), upto(0, 4));
}

void check_all(const Schedule& schedule, const Program& program, const Costs& costs, bool bounds) {
  const Timeline times = simulate(program, costs);
  const Report report = analyse(schedule, program, times);
  for (const DeviceReport& device : report.devices) {
    Ticks idle = 0;
    for (Ticks each : device.idle) {
      CHECK(each >= 0);
      idle += each;
    }
    CHECK(idle == report.makespan - device.busy);
  }

  const CriticalPath path = critical_path(program, times, costs);
  CHECK(path.waiting == 0);
  Ticks kinds = 0, places = 0;
  for (const KindBlame& each : path.kinds) kinds += each.time;
  for (const StageBlame& each : path.stages) places += each.time;
  for (const LinkBlame& each : path.links) places += each.time;
  CHECK(kinds == report.makespan);
  CHECK(places == report.makespan);
  const std::vector<Ticks> spare = slack(program, times, costs);
  CHECK(std::all_of(spare.begin(), spare.end(), [](Ticks each) { return each >= 0; }));
  for (NodeId node : path.nodes) CHECK(spare[node.value] == 0);

  const std::optional<Rational> each = period(schedule, program.table, costs);
  REQUIRE(each);
  // Between two iterations there may be a setup more.
  if (costs.setups.empty()) CHECK(*each <= Rational(report.iteration));
  for (const DeviceReport& device : report.devices) CHECK(*each >= Rational(device.busy));
  if (!bounds) return;
  const LowerBound bound = lower_bound(schedule, program.table, costs);
  CHECK(bound.makespan <= report.makespan);
  CHECK(bound.span <= report.span);
  CHECK(bound.makespan_by == BoundBy::Strong);
}

TEST_CASE("the library: a run allocates a slot for each activation that is held at most, and no more") {
  for (const std::filesystem::path& file : library()) {
    CAPTURE(file);
    const Schedule schedule = test::schedule_of(text_of(file));
    const Program program = test::program_of(schedule, test::table_of(schedule));
    Diagnostics sink;
    const std::optional<Costs> costs = make_costs(schedule, sink);
    REQUIRE(costs);
    const Report report = analyse(schedule, program, simulate(program, *costs));
    for (std::uint32_t d = 0; d < program.table.devices(); ++d)
      CHECK(program.slots[DeviceId(d)].stash == report.devices[DeviceId(d)].peak_activations);
  }
}

TEST_CASE("the library: bounds hold, idle and blame sum exactly, the path has no slack") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (const std::filesystem::path& file : library()) {
    CAPTURE(file);
    Schedule schedule = test::schedule_of(text_of(file));
    const Table table = test::table_of(schedule);
    Program program = test::program_of(schedule, table);
    Diagnostics sink;
    check_all(schedule, program, *make_costs(schedule, sink), true);
    for (int round = 0; round < 4; ++round) {
      CAPTURE(round);
      disturb(schedule, random);
      schedule.costs.setups = {};
      if (round == 3)
        for (std::uint32_t k = 0; k < schedule.ops.kinds().size(); ++k)
          schedule.costs.setups.rules.push_back({KindId(0), KindId(k), 0, {Rational(1 + k)}});
      // The order stays, and the program at first: then slots and edges may hold something up.
      const std::optional<Costs> costs = make_costs(schedule, sink);
      REQUIRE(costs);
      if (round % 2 == 1) program = test::program_of(schedule, table);
      check_all(schedule, program, *costs, true);
    }
  }
}

}  // namespace
}  // namespace stave
