// Stages on several devices: their gradients are summed, and all replicas stay the same; by hand, where a table says
// so.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "executor/plan.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/reduction.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/transformer.h"
#include "make_program.h"

namespace stave {
namespace {

constexpr std::uint32_t kStages = 3;
constexpr std::uint32_t kMicrobatches = 6;

// Even microbatches pass the devices upwards, odd ones downwards.
test::Order two_ways() {
  test::Order order(kStages);
  const auto device = [](std::uint32_t s, std::uint32_t m) { return m % 2 == 0 ? s : kStages - 1 - s; };
  for (std::uint32_t m = 0; m < kMicrobatches; ++m)
    for (std::uint32_t s = 0; s < kStages; ++s) order[device(s, m)].push_back({'F', s, m});
  for (std::uint32_t m = 0; m < kMicrobatches; ++m)
    for (std::uint32_t s = kStages; s-- > 0;) order[device(s, m)].push_back({'B', s, m});
  return order;
}

// Which stages device d has a replica of.
std::vector<std::uint32_t> stages_on(std::uint32_t d) {
  if (d == kStages - 1 - d) return {d};
  return {std::min(d, kStages - 1 - d), std::max(d, kStages - 1 - d)};
}

test::Order with_reductions(const std::string& letters) {
  test::Order order = two_ways();
  for (std::uint32_t d = 0; d < kStages; ++d)
    for (std::uint32_t s : stages_on(d))
      for (char letter : letters) order[d].push_back({letter, s, d});
  return order;
}

std::shared_ptr<const Corpus> text() {
  std::vector<std::uint8_t> bytes;
  RandomStream random(3);
  for (int i = 0; i < 4000; ++i) bytes.push_back(static_cast<std::uint8_t>('a' + random.below(26)));
  return std::make_shared<Corpus>(bytes);
}

ModelConfig tiny() {
  ModelConfig config;
  config.width = 16;
  config.heads = 2;
  config.sequence = 8;
  config.steps = 3;
  return config;
}

void check_replicas_are_equal(Workload& workload) {
  for (std::uint32_t s = 0; s < kStages; ++s) {
    const std::vector<ParameterView> first = workload.stage(StageId(s), 0)->parameters();
    for (std::uint32_t r = 1; Stage* other = workload.stage(StageId(s), r); ++r) {
      const std::vector<ParameterView> views = other->parameters();
      for (std::size_t i = 0; i < first.size(); ++i) {
        const std::size_t size = first[i].count * (first[i].element == Element::Float32 ? 4 : 8);
        CHECK(std::memcmp(views[i].value, first[i].value, size) == 0);
        CHECK(std::memcmp(views[i].gradient, first[i].gradient, size) == 0);
      }
    }
  }
}

TEST_CASE("replicas make one model: the sequential run's gradients, and the same weights on every device") {
  for (const std::string letters : {"", "G", "GO"}) {
    CAPTURE(letters);
    const Program p = make(with_reductions(letters), kStages, kMicrobatches);
    const Result<Plan> plan = make_plan(p, true);
    REQUIRE_MESSAGE(plan, plan.failure().message);
    CHECK(plan.value().model.devices[StageId(0)] == std::vector<DeviceId>{DeviceId(0), DeviceId(2)});
    CHECK(plan.value().model.devices[StageId(1)] == std::vector<DeviceId>{DeviceId(1)});
    for (Clock clock : {Clock::Wall, Clock::Virtual}) {
      RunOptions options;
      options.clock = clock;
      options.steps = 3;
      IntegerWorkload integers;
      IntegerWorkload plain;
      const Result<RunReport> report = run(p, integers, options);
      REQUIRE_MESSAGE(report, report.failure().message);
      const Result<double> loss = run_reference(plain, plan.value().model, 3);
      REQUIRE(loss);
      CHECK(report.value().losses.back() == loss.value());
      CHECK(compare_gradients(p.table, integers, plain).agrees);
      check_replicas_are_equal(integers);

      Transformer trained(tiny(), text());
      Transformer once(tiny(), text());
      REQUIRE(run(p, trained, options));
      check_replicas_are_equal(trained);
      options.steps = 1;
      Transformer first(tiny(), text());
      REQUIRE(run(p, first, options));
      REQUIRE(run_reference(once, plan.value().model, 1));
      const Comparison comparison = compare_gradients(p.table, first, once);
      CHECK(comparison.agrees);
      CHECK(comparison.worst > 0);
    }
  }
}

TEST_CASE("reductions of a table start together and end together") {
  const Program p = make(with_reductions("GO"), kStages, kMicrobatches);
  IntegerWorkload integers(4096);
  RunOptions options;
  options.clock = Clock::Virtual;
  const Result<RunReport> report = run(p, integers, options);
  REQUIRE(report);
  const Result<Plan> plan = make_plan(p, true);
  REQUIRE(plan);
  CHECK(plan.value().meetings.size() == kStages);
  for (std::uint32_t i = 0; i < plan.value().meetings.size(); ++i) {
    for (std::uint32_t position : plan.value().meetings[i]) {
      const std::uint32_t first = plan.value().meetings[i].front();
      CHECK(report.value().timeline.start[position] == report.value().timeline.start[first]);
      CHECK(report.value().timeline.end[position] == report.value().timeline.end[first]);
      if (position != p.table.first[p.table.device_of(position).value])
        CHECK(report.value().timeline.start[position] >= report.value().timeline.end[position - 1]);
    }
  }
}

TEST_CASE("what would leave replicas different is refused") {
  const auto refusal = [](const test::Order& order) {
    const Result<Plan> plan = make_plan(test::make(order, kStages, kMicrobatches), true);
    return plan.ok() ? "" : plan.failure().message;
  };
  CHECK(refusal(with_reductions("O")) ==
        "O(0, 0) updates stage 0, which lies on several devices, but no G has summed their gradients");
  test::Order order = with_reductions("G");
  std::erase_if(order[2], [](const test::Step& step) { return step.letter == 'G' && step.stage == 0; });
  CHECK(refusal(order).find("no G sums the gradients of stage 0 after") == 0);
  order = with_reductions("GO");
  order[2].push_back({'G', 0, 1});
  CHECK(refusal(order) == "the devices of stage 0 do not have the same number of G");
  order = with_reductions("GO");
  order[2].push_back({'O', 0, 1});
  CHECK(refusal(order) ==
        "O(0, 1) updates stage 0, which lies on several devices, but no G has summed their gradients");
  order[2].back() = {'G', 1, 1};
  CHECK(refusal(order) == "G(1, 1) stands on device 2, which does not have its stage: it needs the gradients there");
  // Device 0 has stage 0's meeting before stage 2's, device 2 the other way round.
  order = two_ways();
  order[0].insert(order[0].end(), {{'G', 0, 0}, {'G', 2, 0}});
  order[2].insert(order[2].end(), {{'G', 2, 2}, {'G', 0, 2}});
  CHECK(refusal(order).find("the program cannot finish: G(") == 0);
  // An update that comes before a backward.
  order = with_reductions("");
  order[1].insert(order[1].end() - 1, {'O', 1, 1});
  CHECK(refusal(order) == "no O uses the gradient of B(1, 5)");
}

TEST_CASE("unchecked, devices that come to their reductions in different orders stop, and it is said why") {
  test::Order order = two_ways();
  order[0].insert(order[0].end(), {{'G', 0, 0}, {'G', 2, 0}});
  order[2].insert(order[2].end(), {{'G', 2, 2}, {'G', 0, 2}});
  const Program p = test::lower_unchecked_by_hand(test::make_table(order, kStages, kMicrobatches), kStages,
                                                  kMicrobatches);
  IntegerWorkload integers;
  const Result<RunReport> report = run(p, integers, RunOptions{});
  REQUIRE_MESSAGE(report, report.failure().message);
  REQUIRE(report.value().deadlock);
}

}  // namespace
}  // namespace stave
