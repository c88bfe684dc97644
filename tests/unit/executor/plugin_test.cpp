// A stage of one's own: the example trains and equals its sequential run; libraries that are none are refused in words.
#include "executor/stage/plugin.h"

#include <doctest/doctest.h>

#include "executor/partition.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "tests/unit/executor/make_program.h"

namespace stave::test {
namespace {

std::string failure_of(const std::string& path, const std::string& options = "") {
  const auto loaded = load_stage(path, options);
  return loaded ? "" : loaded.failure().message;
}

TEST_CASE("the example's stages train under a schedule as they do one after another") {
  constexpr std::uint32_t kStages = 4;
  constexpr std::uint32_t kMicrobatches = 6;
  constexpr std::uint64_t kSteps = 60;
  for (const Order& order : {one_f_one_b(kStages, kMicrobatches), split_1f1b(kStages, kMicrobatches, false)}) {
    const Program program = make(order, kStages, kMicrobatches);
    const auto workload = load_stage(STAVE_EXAMPLE_STAGE, "width=8");
    REQUIRE(workload);
    RunOptions options;
    options.clock = Clock::Virtual;
    options.steps = kSteps;
    const Result<RunReport> report = run(program, *workload.value(), options);
    REQUIRE(report);
    CHECK(report.value().losses.back() < report.value().losses.front() / 2);
    const auto reference = load_stage(STAVE_EXAMPLE_STAGE, "width=8");
    REQUIRE(reference);
    const Partition partition = plain_partition(kStages, kMicrobatches);
    REQUIRE(reference.value()->configure(partition));
    const Result<double> loss = run_reference(*reference.value(), partition, kSteps);
    REQUIRE(loss);
    CHECK(loss.value() == report.value().losses.back());
    const Comparison comparison = compare_gradients(program.table, *workload.value(), *reference.value());
    CHECK(comparison.must_be_exact);
    CHECK(comparison.exact == kStages);
  }
}

TEST_CASE("a call that fails is an error with its code and message") {
  const auto workload = load_stage(STAVE_EXAMPLE_STAGE, "width=1");
  REQUIRE(workload);
  const Result<void> fits = workload.value()->configure(plain_partition(2, 2));
  REQUIRE(!fits);
  CHECK(fits.failure().message ==
        std::string("sizes of `") + STAVE_EXAMPLE_STAGE + "` failed with code 1: the width is 2 to 1024");
}

TEST_CASE("B calls backward, if the library's table reaches so far") {
  const auto failure = [](const char* path, const Order& order) {
    const auto workload = load_stage(path, "");
    REQUIRE(workload);
    RunOptions options;
    options.clock = Clock::Virtual;
    const Result<RunReport> report = run(make(order, 2, 2), *workload.value(), options);
    return report ? "" : report.failure().message;
  };
  const std::string path = STAVE_STAGE_WITH_BAD_BACKWARD;
  CHECK(failure(path.c_str(), one_f_one_b(2, 2)) ==
        "B(1, 0) on device 1, step 1: backward of `" + path + "` failed with code 7");
  CHECK(failure(path.c_str(), split_1f1b(2, 2, false)) == "");
  CHECK(failure(STAVE_STAGE_OF_EARLIER_HEADER, one_f_one_b(2, 2)) == "");
}

TEST_CASE("what is no stage library is refused") {
  CHECK(failure_of("/nowhere/mine.so").starts_with("the stage library `/nowhere/mine.so` cannot be loaded: "));
  CHECK(failure_of(STAVE_STAGE_WITHOUT_SYMBOL).ends_with("is no stage library: it does not export `stave_stage`"));
  CHECK(failure_of(STAVE_STAGE_OF_OTHER_VERSION)
            .ends_with("is no stage library: it has version 2 of the interface, and this program 1"));
  CHECK(failure_of(STAVE_STAGE_WITHOUT_FUNCTIONS).ends_with("is no stage library: its table has no `sizes`"));
}

}  // namespace
}  // namespace stave::test
