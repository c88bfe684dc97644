// Training under each schedule of the library gives the gradients of a plain sequential run.

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>

#include "executor/random.h"
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

/// Settings of four microbatches, then `order` on every device.
std::string schedule_with(const std::string& settings, const std::string& order) {
  return "schedule mixed\n" + settings + "on device d { " + order + " }\n";
}

const std::string kThree = "devices 3 stages 3 microbatches 4\n";
const std::string kGreedy = "any { B(*, *) } any { F(*, *) }";

TEST_CASE("so do they with replicas whose gradients are summed beside the computing, and updates in the order") {
  check_gradients(schedule_with(kThree + "place stage s of microbatch m on device (s if m < 2 else 2 - s)\n",
                                kGreedy + " any { G(*) } any { O(*) }"));
}

TEST_CASE("so do they with offload and reload beside the computing") {
  check_gradients(schedule_with(kThree + "place stage s on device s\n"
                                "op Out(s in stages, m in microbatches)  on stream copy  after F(s, m)\n"
                                "op In(s in stages, m in microbatches)  on stream copy  after Out(s, m)\n"
                                "I(s, m) after In(s, m)\ncost Out = 1 / 2, In = 1 / 2\n",
                                kGreedy + " any { Out(*, *) In(*, *) }"));
}

std::string text_of(const std::vector<std::uint32_t>& list) {
  std::string text;
  for (std::uint32_t each : list) text += (text.empty() ? "[" : ", ") + std::to_string(each);
  return text + "]";
}

TEST_CASE("so do they where routes, split backwards, replicas, slices and recomputation meet at random") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random.below(n)); };
    const std::uint32_t stages = 2 + below(3);
    const std::uint32_t microbatches = 1 + below(5);
    const std::uint32_t devices = 1 + below(stages);
    const std::string counts = "devices " + std::to_string(devices) + " stages " + std::to_string(stages) + "\n";

    // Every microbatch goes its own way; the last through all stages, so that each is visited.
    std::string routes;
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      std::vector<std::uint32_t> route;
      for (std::uint32_t s = 0; s < stages; ++s)
        if (m + 1 == microbatches || below(3) != 0) route.push_back(s);
      for (std::size_t i = 1; i < route.size(); ++i)
        std::swap(route[i], route[below(i + 1)]);
      if (route.empty()) route.push_back(below(stages));
      routes += (m == 0 ? "[" : ", ") + text_of(route);
    }
    const std::string on = "place stage s of microbatch m on device (s + m) mod " + std::to_string(devices) + "\n";
    const std::string first = below(2) == 0 ? "any { I(*, *) } any { F(*, *) }" : "any { F(*, *) } any { I(*, *) }";
    check_gradients(schedule_with(counts + "microbatches " + std::to_string(microbatches) + "\n" + on +
                                      "let ways = " + routes + "]\nroute microbatch m = ways[m]\n",
                                  first + " any { W(*, *) }"));

    // Slices of every microbatch's own number and sizes; the first few of each are recomputed.
    std::string slices;
    std::vector<std::uint32_t> again;
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      std::vector<std::uint32_t> sizes;
      for (std::uint32_t left = 1 + below(4); left > 0; --left) sizes.push_back(1 + below(5));
      again.push_back(below(sizes.size() + 1));
      slices += (m == 0 ? "[" : ", ") + text_of(sizes);
    }
    slices += "]";
    check_gradients(schedule_with(
        counts + "let sizes = " + slices + "\nlet again = " + text_of(again) +
            "\nmicrobatches [sum(row) for row in sizes]\nslices sizes\n" + on +
            "op R(s in stages, m in microbatches, q in slices)  if q < again[m]\n"
            "  after F(s, m, q), I(s + 1, m, q), I(s, m, q + 1)\nI(s, m, q) after R(s, m, q)\ncost R = 1\n",
        "any { I(*, *, *) } any { R(*, *, *) } any { F(*, *, *) } fill { W(*, *, *) }"));
  }
}

TEST_CASE("weight gradients in microbatch order must agree to the last bit") {
  const Schedule schedule = test::schedule_of(read(fs::path(STAVE_SOURCE_DIR) / "schedules" / "one_f_one_b.sched"));
  for (bool in_order : accumulates_in_order(test::table_of(schedule))) CHECK(in_order);
}

}  // namespace
}  // namespace stave
