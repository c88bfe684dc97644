// Costs made again without expanding, and the closed form of the makespan under other costs.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "compiler/compile.h"
#include "compiler/expect.h"
#include "compiler/reprice.h"

namespace stave {
namespace {

constexpr const char* kText = R"(schedule t(P = 2, M = 3)
devices P stages P microbatches M
place stage s on device s
on device d { repeat M { F(d, next) }  repeat M { B(d, next) } }
cost I = 2 * F
cost message(a, b) = 1 / 2 if a < b else 1 / 4
expect makespan >= 1
expect makespan == 7 if F == 7 and message(0, 1) == 0
expect bubble < 1 and makespan == (M + P - 1) * (F + B) if message(0, 1) == 0
expect makespan == M / 0 if F == 5
expect makespan == 11 if F == 5
)";

class NoMetrics : public Metrics {
 public:
  std::optional<Rational> value(const MetricQuery&) const override { return std::nullopt; }
};

struct File {
  Sources sources;
  Diagnostics sink;
  Compiled compiled;

  File() : compiled(*compile(sources, sources.add("t.sched", kText), sink)) {}
  void cost(const std::string& text) {
    compiled = *override_costs(compiled, sources, sources.add("--cost", text), sink);
  }
  Schedule expanded(const std::vector<Argument>& arguments = {}) {
    return std::move(*expand(compiled, arguments, sink).schedule);
  }
};

Rational duration(const CostSet& costs, const Schedule& schedule, const char* kind) {
  return costs.duration[schedule.ops.find(kind)].values[0];
}

TEST_CASE("a parameter that only --cost knows changes costs as an expansion would") {
  File file;
  file.compiled = with_parameter(file.compiled, "c", 1);
  file.cost("message(a, b)=c if a < b else 0");
  const Schedule schedule = file.expanded();
  CHECK(schedule.costs.message.of(1, 0, 1, 0) == Rational(1));
  const std::optional<CostSet> costs = price_again(file.compiled, {make_argument("c", 5)}, schedule, nullptr, file.sink);
  REQUIRE(costs);
  CHECK(costs->message.of(1, 0, 1, 0) == Rational(5));
  CHECK(costs->message.of(1, 1, 0, 0) == Rational(0));
  CHECK(duration(*costs, schedule, "I") == Rational(2));
}

TEST_CASE("a cost can be a parameter; what the file derives from it above stays") {
  File file;
  CHECK(!with_cost_parameter(file.compiled, "nothing"));
  file.compiled = *with_cost_parameter(file.compiled, "F");
  file.compiled = *with_cost_parameter(file.compiled, "gradient");
  const Schedule schedule = file.expanded({make_argument("F", 3), make_argument("gradient", 9)});
  CHECK(duration(schedule.costs, schedule, "F") == Rational(3));
  // `cost I = 2 * F` stands above: --cost does the same.
  CHECK(duration(schedule.costs, schedule, "I") == Rational(2));
  CHECK(schedule.costs.message.of(2, 0, 1, 0) == Rational(9));
  CHECK(schedule.costs.message.of(1, 0, 1, 0) == *Rational::make(1, 2));
  const std::optional<CostSet> wrong = price_again(file.compiled, {make_argument("F", -1)}, schedule, nullptr, file.sink);
  CHECK(!wrong);
  CHECK(file.sink.has_errors());
}

TEST_CASE("the closed form is that of the first line that applies and has a value") {
  File file;
  file.compiled = *with_cost_parameter(file.compiled, "F");
  const auto claimed = [&](Rational forward, bool free) {
    const Schedule schedule = file.expanded({make_argument("F", forward)});
    CostSet costs = schedule.costs;
    if (free) costs.message.assign(costs.message.size(), Rational(0));
    return claimed_makespan(schedule, costs, NoMetrics());
  };
  // Messages cost something, and no line is for that.
  CHECK(!claimed(1, false));
  CHECK(claimed(1, true) == Rational(4 * (1 + 3)));
  CHECK(claimed(7, true) == Rational(7));
  // A line without a value is passed over, and lines about an inequality are none.
  CHECK(claimed(5, false) == Rational(11));
}

}  // namespace
}  // namespace stave
