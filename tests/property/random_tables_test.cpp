// Random tables: whatever is legal runs and gives the one right result; whatever is not ends in a report.

#include <doctest/doctest.h>

#include <numeric>
#include <random>

#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "scheduler/simulate.h"
#include "tests/property/random_tables.h"

namespace stave {
namespace {

using test::RandomTables;

unsigned new_seed() { return std::random_device()(); }

TEST_CASE("every legal table gives the one right result, whatever its messages take") {
  const unsigned seed = new_seed();
  CAPTURE(seed);
  RandomTables random(seed);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const Schedule schedule = random.schedule();
    const Program program = test::program_of(schedule, random.legal(schedule));
    IntegerWorkload workload, plain;
    RunOptions options;
    options.clock = round % 2 == 0 ? Clock::Wall : Clock::Virtual;
    options.steps = 2;
    options.cost_ns = random.delays(program, 300000);
    const Result<RunReport> report = run(program, workload, options);
    REQUIRE_MESSAGE(report.ok(), report.failure().message);
    REQUIRE(run_reference(plain, test::partition_of(program), 2).ok());
    CHECK(compare_gradients(program.table, workload, plain).agrees);
  }
}

TEST_CASE("slots delay nothing under the costs a program was lowered with") {
  const unsigned seed = new_seed();
  CAPTURE(seed);
  RandomTables random(seed);
  for (int round = 0; round < 60; ++round) {
    const Schedule schedule = random.schedule();
    const Table table = random.legal(schedule);
    Diagnostics sink;
    const Costs costs = *make_costs(schedule, sink);
    const Starts starts = start_times(schedule, table, costs);
    const Timeline timeline = simulate(lower(schedule, table, starts), costs);
    CHECK(std::equal(starts.start.begin(), starts.start.end(), timeline.start.begin()));
    CHECK(std::equal(starts.end.begin(), starts.end.end(), timeline.end.begin()));
  }
}

TEST_CASE("lowered unchecked, a program finishes exactly if the verifier says so") {
  const unsigned seed = new_seed();
  CAPTURE(seed);
  RandomTables random(seed);
  int finished = 0, stuck = 0;
  for (int round = 0; round < 80; ++round) {
    CAPTURE(round);
    const Schedule schedule = random.schedule();
    const Program program = lower_unchecked(schedule, random.disturbed(schedule));
    Diagnostics sink;
    const bool finishes = verify(program, schedule, sink);
    IntegerWorkload workload, plain;
    const Result<RunReport> report = run(program, workload, RunOptions());
    REQUIRE_MESSAGE(report.ok(), report.failure().message);
    CHECK(report.value().deadlock.has_value() == !finishes);
    ++(finishes ? finished : stuck);
    if (!finishes) continue;
    REQUIRE(run_reference(plain, test::partition_of(program), 1).ok());
    CHECK(compare_gradients(program.table, workload, plain).agrees);
  }
  CHECK(finished > 0);
  CHECK(stuck > 0);
}

}  // namespace
}  // namespace stave
