// Splits of layers over stages: against every split of small cases.
#include "scheduler/partition.h"

#include <algorithm>
#include <functional>
#include <random>

#include "doctest/doctest.h"

namespace stave {

namespace {

/// The closed form of a pipe with these loads: the way down the stages, and the slowest for every further microbatch.
double pipe(const PartitionProblem& problem, const Split& split, double microbatches) {
  double way = 0;
  double slowest = 0;
  std::uint32_t at = 0;
  for (std::uint32_t s = 0; s < split.size(); ++s) {
    double load = (s == 0 ? problem.first_load : 0) + (s + 1 == split.size() ? problem.last_load : 0);
    for (std::uint32_t i = 0; i < split[s]; ++i) load += problem.load[s][at++];
    way += load;
    slowest = std::max(slowest, load);
  }
  return way + (microbatches - 1) * slowest;
}

void each_split(std::uint32_t layers, std::uint32_t stages, const std::function<void(const Split&)>& visit) {
  Split split;
  const std::function<void(std::uint32_t)> rest = [&](std::uint32_t left) {
    const auto missing = static_cast<std::uint32_t>(stages - split.size());
    if (missing == 1) {
      split.push_back(left);
      visit(split);
      split.pop_back();
      return;
    }
    for (std::uint32_t n = 1; n + missing - 1 <= left; ++n) {
      split.push_back(n);
      rest(left - n);
      split.pop_back();
    }
  };
  rest(layers);
}

}  // namespace

TEST_CASE("the slowest stage takes least, and the best split is as short as any or within 2 %") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> size(1, 3);
  int equal = 0;
  for (int round = 0; round < 40; ++round) {
    PartitionProblem problem;
    problem.layers = 6 + round % 5;
    problem.stages = 2 + round % 3;
    for (std::uint32_t s = 0; s < problem.stages; ++s) {
      problem.load.emplace_back();
      // Devices that are not alike: a stage takes a factor of what another does.
      const double factor = size(random);
      for (std::uint32_t i = 0; i < problem.layers; ++i) problem.load.back().push_back(factor * (1 + (i * 7 + round) % 3));
    }
    problem.last_load = size(random);
    problem.makespan = [&](const Split& split) { return pipe(problem, split, 4); };
    const PartitionResult result = partition(problem);
    double best = 1e300;
    double slowest = 1e300;
    each_split(problem.layers, problem.stages, [&](const Split& split) {
      best = std::min(best, pipe(problem, split, 4));
      // With endless microbatches only the slowest counts.
      slowest = std::min(slowest, pipe(problem, split, 1e12) / 1e12);
    });
    REQUIRE(result.best);
    CHECK(*result.best->makespan <= best * 1.02);
    CHECK(result.least_slowest.slowest == doctest::Approx(slowest).epsilon(1e-6));
    equal += *result.best->makespan <= best * (1 + 1e-9);
  }
  CHECK(equal >= 36);
}

TEST_CASE("a split that cannot be is none") {
  PartitionProblem problem;
  problem.layers = 4;
  problem.stages = 2;
  problem.load.assign(2, std::vector<double>(4, 1));
  problem.makespan = [](const Split& split) -> std::optional<double> {
    if (split[0] != 1) return std::nullopt;
    return 5;
  };
  const PartitionResult result = partition(problem);
  REQUIRE(result.best);
  CHECK(result.best->layers == Split{1, 3});
  CHECK_FALSE(result.uniform.makespan);
}

}  // namespace stave
