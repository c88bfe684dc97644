// The language model under schedules, held against the reference.
#include <doctest/doctest.h>

#include "executor/random.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/transformer.h"
#include "make_program.h"

namespace stave {
namespace {

std::shared_ptr<const Corpus> text() {
  std::vector<std::uint8_t> bytes;
  RandomStream random(7);
  for (int i = 0; i < 5000; ++i) bytes.push_back(static_cast<std::uint8_t>('a' + random.below(26)));
  return std::make_shared<Corpus>(bytes);
}

Comparison compare(const test::Order& order, std::uint32_t stages, std::uint32_t microbatches, FreezeRatios freeze) {
  ModelConfig config;
  config.width = 24;
  config.heads = 3;
  config.sequence = 10;
  const Program p = test::make(order, stages, microbatches);
  Transformer scheduled(config, text(), freeze);
  Transformer plain(config, text(), freeze);
  RunOptions options;
  options.clock = Clock::Virtual;
  const Result<RunReport> report = run(p, scheduled, options);
  REQUIRE_MESSAGE(report, report.failure().message);
  const Result<double> loss = run_reference(plain, plain_partition(stages, microbatches), 1);
  REQUIRE(loss);
  CHECK(report.value().losses.back() == loss.value());
  return compare_gradients(p.table, scheduled, plain);
}

TEST_CASE("gradients equal the reference's to the last bit where W comes in microbatch order") {
  FreezeRatios freeze;
  for (std::uint32_t i = 0; i < 4 * 8; ++i) freeze.ratio.push_back(i % 5 * 0.25);
  for (const FreezeRatios& ratios : {FreezeRatios{}, freeze}) {
    for (const test::Order& order : {test::gpipe(4, 8), test::one_f_one_b(4, 8), test::split_1f1b(4, 8, false)}) {
      const Comparison result = compare(order, 4, 8, ratios);
      CHECK(result.must_be_exact);
      CHECK(result.exact == result.tensors);
      CHECK(result.agrees);
    }
  }
}

TEST_CASE("other orders of W agree within 1e-5 of the largest element") {
  const Comparison result = compare(test::split_1f1b(4, 8, true), 4, 8, {});
  CHECK(!result.must_be_exact);
  CHECK(result.exact < result.tensors);
  CHECK(result.worst > 0);
  CHECK(result.agrees);
}

TEST_CASE("several stages a device, in any order") {
  const std::vector<std::uint32_t> loop = {0, 1, 0, 1};
  const std::vector<std::uint32_t> v = {0, 1, 1, 0};
  for (const auto& place : {loop, v}) {
    const Comparison result = compare(test::random_order(3, place, 2, 5), 4, 5, {});
    CHECK(result.agrees);
  }
}

TEST_CASE("a wrong gradient is seen") {
  ModelConfig config;
  config.width = 8;
  config.heads = 1;
  config.sequence = 4;
  const Program p = test::make(test::one_f_one_b(1, 2), 1, 2);
  Transformer a(config, text());
  config.seed = 2;
  Transformer b(config, text());
  REQUIRE(run(p, a, RunOptions{}));
  REQUIRE(run_reference(b, plain_partition(1, 2), 1));
  const Comparison result = compare_gradients(p.table, a, b);
  CHECK(!result.agrees);
  CHECK(!result.worst_tensor.empty());
}

}  // namespace
}  // namespace stave
