// A table run in its own order, unplanned and unbuffered: what finishes so has trained what the planned run has.

#include <doctest/doctest.h>

#include <cstring>

#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "tests/property/library.h"
#include "tests/property/lowered.h"

namespace stave {
namespace {

RunOptions two_steps() {
  RunOptions options;
  options.clock = Clock::Virtual;
  options.steps = 2;
  return options;
}

/// Runs a schedule both ways. True if the unchecked run finishes; then both must leave the same.
bool finishes_unchecked(const std::string& text, const std::vector<Argument>& arguments = {}) {
  const Schedule schedule = test::schedule_of(text, arguments);
  const Table table = test::table_of(schedule);
  const Program planned = test::program_of(schedule, table);
  const Program unchecked = lower_unchecked(schedule, table);
  CHECK(planned.reads_version == unchecked.reads_version);
  CHECK(planned.makes_version == unchecked.makes_version);
  IntegerWorkload expected(16, 1);
  IntegerWorkload got(16, 1);
  const Result<RunReport> reference = run(planned, expected, two_steps());
  REQUIRE_MESSAGE(reference, reference.failure().message);
  const Result<RunReport> report = run(unchecked, got, two_steps());
  REQUIRE_MESSAGE(report, report.failure().message);
  if (report.value().deadlock) return false;
  CHECK(report.value().losses == reference.value().losses);
  CHECK(compare_gradients(table, got, expected).agrees);
  for (std::uint32_t s = 0; s < schedule.stages; ++s) {
    const Stage* mine = got.stage(StageId(s));
    if (mine == nullptr) continue;
    const ParameterView a = mine->parameters()[0];
    const ParameterView b = expected.stage(StageId(s))->parameters()[0];
    CHECK(std::memcmp(a.value, b.value, a.count * sizeof(std::uint64_t)) == 0);
  }
  return true;
}

TEST_CASE("every schedule of the library, in its table's own order, trains the same or stops") {
  std::size_t finished = 0;
  for (const std::filesystem::path& file : test::library()) {
    CAPTURE(file.filename().string());
    finished += finishes_unchecked(test::read(file));
  }
  CHECK(finished >= 3);
}

TEST_CASE("a PipeDream of few microbatches, whose later forwards read newer weights, finishes so") {
  CHECK(finishes_unchecked(R"(
    schedule updates
    op O(s in stages, m in microbatches)  after W(s, m)
    devices 2 stages 2 microbatches 3
    place stage s on device s
    on device d { F(d, 0) F(d, 1) B(d, 0) O(d, 0) B(d, 1) O(d, 1) F(d, 2) B(d, 2) O(d, 2) }
  )"));
}

TEST_CASE("a pair starts when it has received what both its ops need") {
  CHECK(finishes_unchecked(R"(
    schedule pairs
    devices 2 stages 2 microbatches 2
    place stage s on device s
    on device 0 { F(0, 0) F(0, 1) B(0, 0) B(0, 1) }
    on device 1 { F(1, 0) B(1, 0) with F(1, 1) B(1, 1) }
  )"));
  // Both ways at once, as DualPipe has it.
  CHECK(finishes_unchecked(R"(
    schedule both_ways
    devices 2 stages 2 microbatches 2
    place stage s of microbatch m on device (s if m == 0 else 1 - s)
    on device 0 { F(0, 0)  F(1, 1)  B(1, 1)  B(0, 0) }
    on device 1 { F(0, 1) with F(1, 0)  B(1, 0) with B(0, 1) }
  )"));
}

TEST_CASE("orders that can never run stop, whatever weights they would read") {
  const std::string head = "devices 2 stages 2 microbatches 2\nplace stage s on device s\n"
                           "op O(s in stages, k in 0 .. 2) after W(s, k)\n";
  for (const std::string& order :
       {std::string("F(s, m) receives weights from O(s, m - 1)\n"
                    "on device d { F(d, 0) F(d, 1) B(d, 0) O(d, 0) B(d, 1) O(d, 1) }\n"),
        std::string("on device d { O(d, 0) B(d, 0) F(d, 0) F(d, 1) B(d, 1) O(d, 1) }\n")}) {
    CAPTURE(order);
    Diagnostics sink;
    const Schedule schedule = test::schedule_of("schedule stuck\n" + head + order);
    const std::optional<Costs> costs = make_costs(schedule, sink);
    REQUIRE(costs);
    const std::optional<Table> table = stave::order(schedule, *costs, sink);
    REQUIRE(table);
    CHECK(!verify(schedule, *table, sink));
    IntegerWorkload workload(16, 1);
    const Result<RunReport> report = run(lower_unchecked(schedule, *table), workload, two_steps());
    REQUIRE_MESSAGE(report, report.failure().message);
    CHECK(report.value().deadlock.has_value());
  }
}

}  // namespace
}  // namespace stave
