// Training under each schedule of the library gives the gradients of a plain sequential run.

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>

#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/transformer.h"
#include "tests/property/library.h"
#include "tests/property/lowered.h"

namespace stave {
namespace {

namespace fs = std::filesystem;

using test::library;
using test::read;

FreezeRatios ratios_of(const Schedule& schedule) {
  FreezeRatios freeze;
  for (Rational ratio : schedule.costs.freeze) freeze.ratio.push_back(ratio.to_double());
  return freeze;
}

void check_gradients(const std::string& text) {
  const Schedule schedule = test::schedule_of(text);
  const Program program = test::program_of(schedule, test::table_of(schedule));
  ModelConfig model;
  model.width = 32;
  model.sequence = 24;
  model.rows = 1;
  model.steps = 1;
  std::vector<std::uint8_t> bytes;
  for (char c : read(fs::path(STAVE_SOURCE_DIR) / "docs" / "language.md")) bytes.push_back(static_cast<std::uint8_t>(c));
  const auto corpus = std::make_shared<const Corpus>(std::move(bytes));
  RunOptions options;
  options.clock = Clock::Virtual;

  Transformer trained(model, corpus, ratios_of(schedule));
  Transformer plain(model, corpus, ratios_of(schedule));
  const Result<RunReport> report = run(program, trained, options);
  REQUIRE_MESSAGE(report.ok(), report.failure().message);
  const Partition partition = test::partition_of(program);
  const Result<double> loss = run_reference(plain, partition, 1);
  REQUIRE_MESSAGE(loss.ok(), loss.failure().message);
  const Comparison comparison = compare_gradients(program.table, trained, plain);
  CAPTURE(comparison.worst);
  CAPTURE(comparison.worst_tensor);
  CAPTURE(comparison.must_be_exact);
  CHECK(comparison.tensors > 4);
  CHECK(comparison.agrees);
  CHECK(report.value().losses.at(0) == doctest::Approx(loss.value()).epsilon(1e-6));

  IntegerWorkload whole(48, 1, ratios_of(schedule));
  IntegerWorkload whole_plain(48, 1, ratios_of(schedule));
  REQUIRE(run(program, whole, options).ok());
  REQUIRE(run_reference(whole_plain, partition, 1).ok());
  CHECK(compare_gradients(program.table, whole, whole_plain).agrees);
}

TEST_CASE("gradients of every schedule of the library equal the sequential run's") {
  for (const fs::path& file : library()) {
    CAPTURE(file.filename().string());
    check_gradients(read(file));
  }
}

TEST_CASE("so do they with frozen groups") {
  for (const fs::path& file : library()) {
    CAPTURE(file.filename().string());
    check_gradients(read(file) + "\nfreeze W(s, m) = 0.5 if s < 2 and m mod 2 == 0 else 0\n");
  }
}

TEST_CASE("weight gradients in microbatch order must agree to the last bit") {
  const Schedule schedule = test::schedule_of(read(fs::path(STAVE_SOURCE_DIR) / "schedules" / "one_f_one_b.sched"));
  for (bool in_order : accumulates_in_order(test::table_of(schedule))) CHECK(in_order);
}

}  // namespace
}  // namespace stave
