#include "executor/rendezvous.h"

#include <doctest/doctest.h>

#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/sleep.h"
#include "make_program.h"

namespace stave {
namespace {

Program unchecked(const test::Order& order, std::uint32_t stages, std::uint32_t microbatches) {
  return test::lower_unchecked_by_hand(test::make_table(order, stages, microbatches), stages, microbatches);
}

TEST_CASE("GPipe finishes in table order without buffering, and trains right") {
  const Program p = unchecked(test::gpipe(3, 4), 3, 4);
  IntegerWorkload integers;
  IntegerWorkload plain;
  RunOptions options;
  options.steps = 3;
  const Result<RunReport> report = run(p, integers, options);
  REQUIRE_MESSAGE(report, report.failure().message);
  CHECK(!report.value().deadlock);
  REQUIRE(run_reference(plain, plain_partition(3, 4), 3));
  CHECK(compare_gradients(p.table, integers, plain).agrees);
}

TEST_CASE("1F1B in table order hangs when nothing is buffered, and the report says who waits for whom") {
  const Program p = unchecked(test::one_f_one_b(2, 3), 2, 3);
  IntegerWorkload integers;
  const Result<RunReport> report = run(p, integers, RunOptions{});
  REQUIRE(report);
  REQUIRE(report.value().deadlock);
  CHECK(report.value().losses.empty());
  const Deadlock& deadlock = *report.value().deadlock;
  REQUIRE(deadlock.blocked.size() == 2);
  CHECK(deadlock.cycle == std::vector<DeviceId>{DeviceId(0), DeviceId(1)});
  CHECK(
      describe(p, deadlock) ==
      "device 0 is stuck at the activation of F(0, 1) from device 0 to device 1, which needs device 1 to be there too\n"
      "device 1 is stuck at the gradient of B(1, 0) from device 1 to device 0, which needs device 0 to be there too\n"
      "cycle: device 0 waits for device 1 waits for device 0\n");
}

TEST_CASE("an op before what it needs on its own device waits in vain") {
  const Program p = unchecked({{{'B', 0, 0}, {'F', 0, 0}}}, 1, 1);
  SleepWorkload sleep;
  Program waiting = p;
  Rows<NodeId> waits;
  waits.items = {NodeId(1)};
  waits.end_row();
  waits.end_row();
  waiting.waits = waits;
  const Result<RunReport> report = run(waiting, sleep, RunOptions{});
  REQUIRE(report);
  REQUIRE(report.value().deadlock);
  CHECK(describe(waiting, *report.value().deadlock) ==
        "device 0 is stuck at B(0, 0) on device 0, which needs F(0, 0) on device 0, later in its own order\n"
        "cycle: device 0 waits for device 0\n");
}

TEST_CASE("two devices whose backwards come before their forwards") {
  // Device 1 takes microbatch 1 before 0; device 0 sends 0 first and waits.
  test::Order order = test::gpipe(2, 2);
  std::swap(order[1][0], order[1][1]);
  const Program p = unchecked(order, 2, 2);
  SleepWorkload sleep;
  for (Clock clock : {Clock::Wall, Clock::Virtual}) {
    RunOptions options;
    options.clock = clock;
    const Result<RunReport> report = run(p, sleep, options);
    REQUIRE(report);
    REQUIRE(report.value().deadlock);
    CHECK(report.value().deadlock->cycle.size() == 2);
  }
}

TEST_CASE("a send holds both ends for as long as it takes") {
  const Program p = unchecked(test::gpipe(2, 1), 2, 1);
  SleepWorkload sleep;
  RunOptions options;
  options.clock = Clock::Virtual;
  options.cost_ns.assign(p.nodes(), 10);
  const Result<RunReport> report = run(p, sleep, options);
  REQUIRE(report);
  // F, message, F, B, message, B.
  CHECK(report.value().makespan_ns == 60);
}

}  // namespace
}  // namespace stave
