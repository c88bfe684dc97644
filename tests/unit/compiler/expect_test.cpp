#include "compiler/expect.h"

#include "compiled.h"

using namespace stave;

namespace {

/// A schedule of two devices that takes 6 units, device 1 being busy for 4 of them.
class Fixed : public Metrics {
 public:
  std::optional<Rational> value(const MetricQuery& query) const override {
    switch (query.metric) {
      case Metric::Makespan: return Rational(6);
      case Metric::Bubble: return Rational::make(1, 3);
      case Metric::Span: return Rational(query.first ? 5 - std::int64_t(*query.first) : 5);
      case Metric::Busy: return Rational(4);
      case Metric::Idle: return query.cause == IdleCause::Filling ? std::optional<Rational>(*query.first) : std::nullopt;
      case Metric::PeakActivations: return Rational(2 - std::int64_t(*query.first));
      case Metric::Count: return Rational(query.kind.value);
      default: return std::nullopt;
    }
  }
};

/// What becomes of the one `expect` line of a schedule: "holds", "fails: ...", "skipped: ...", "does not apply", an error.
std::string tried(const std::string& line, const std::string& costs = "") {
  Built built = build(kTwo + kInOrder + line, {}, costs);
  REQUIRE_MESSAGE(built.expanded.schedule.has_value(), built.said());
  const std::vector<ExpectResult> results = try_expects(built.schedule(), Fixed(), built.sink);
  REQUIRE(results.size() == 1);
  switch (results[0].outcome) {
    case ExpectOutcome::Holds: return "holds";
    case ExpectOutcome::DoesNotApply: return "does not apply";
    case ExpectOutcome::Skipped: return "skipped: " + results[0].note;
    case ExpectOutcome::Error: return built.said();
    case ExpectOutcome::Fails: break;
  }
  std::string result = "fails: " + results[0].failure->message;
  for (const std::string& note : results[0].failure->notes) result += "; " + note;
  return result;
}

}  // namespace

TEST_CASE("claims that hold") {
  CHECK(tried("expect makespan == (M + P - 1) * (F + B) - 3") == "holds");
  CHECK(tried("expect bubble == 1 / 3 and span == 5") == "holds");
  CHECK(tried("expect span(0) == 5 and span(1) == 4") == "holds");
  CHECK(tried("expect F(1, 0) + B == 3") == "holds");
  CHECK(tried("expect peak_activations(d) == P - d for d in devices") == "holds");
  CHECK(tried("expect sum(busy(d) for d in devices) == 8") == "holds");
  CHECK(tried("expect idle(1, filling) == 1") == "holds");
  CHECK(tried("expect count(W) == 2") == "holds");
  CHECK(tried("expect (F with B) == 3") == "holds");
  CHECK(tried("expect makespan == 6 + message", "message=0") == "holds");
}

TEST_CASE("claims that do not hold show both sides") {
  CHECK(tried("expect makespan == 3 * (F + B)") ==
        "fails: this expectation does not hold: the left side is 6, the right side 9; where P = 2, M = 2");
  CHECK(tried("expect peak_activations(d) >= 2 for d in devices") ==
        "fails: this expectation does not hold: the left side is 1, the right side 2; with d = 1; where P = 2, M = 2");
  CHECK(tried("expect makespan == 6 and bubble < 1 / 4") ==
        "fails: this expectation does not hold: the left side is 1/3, the right side 1/4; where P = 2, M = 2");
  CHECK(tried("expect not makespan == 6") == "fails: this expectation does not hold; where P = 2, M = 2");
}

TEST_CASE("conditions and empty lists") {
  CHECK(tried("expect makespan == 1 if message > 0") == "does not apply");
  CHECK(tried("expect makespan == 6 + 6 * message if message > 0", "message=1").find("fails") == 0);
  CHECK(tried("expect makespan == 1 for d in 0 .. 0") == "does not apply");
  CHECK(tried("expect busy(d) == 1 for d in devices if d > 5") == "does not apply");
}

TEST_CASE("what cannot be known is skipped with a note") {
  CHECK(tried("expect gap == 0") == "skipped: `gap` is not available in this version");
  CHECK(tried("expect idle(0, queue) == 0") == "skipped: `idle` by queue is not available in this version");
  CHECK(tried("cost F(s, m) = s + 1\nexpect makespan == F") == "skipped: the cost of `F` is not one number");
  CHECK(tried("cost F(s, m) = s + 1\nexpect makespan == 3 * F(1, 0)") == "holds");
  CHECK(tried("cost activation = 2\nexpect makespan == message") == "skipped: the cost of `message` is not one number");
  CHECK(tried("cost activation = 2\nexpect makespan == 3 * activation") == "holds");
}

TEST_CASE("claims without a value are errors") {
  CHECK(tried("expect busy(2) == 4") == "7:13 `2`: there is no device 2: they run from 0 to 1 [index-outside]\n");
  CHECK(tried("expect makespan == 1 / message").find("[division-by-zero]") != std::string::npos);
  CHECK(tried("expect makespan").find("a condition is needed here, and this is a number") != std::string::npos);
  CHECK(tried("expect F(0, 2) == 1").find("[index-outside]") != std::string::npos);
}

TEST_CASE("metrics are called as they are declared") {
  CHECK(said_of(kInOrder + "expect busy == 3") == "7:8 `busy`: `busy` takes 1 value, not 0 [argument-count]\n");
  CHECK(said_of(kInOrder + "expect idle(0, filing) == 3") ==
        "7:16 `filing`: there is no such cause of idle time [unknown-name]\n  fix: did you mean `filling`?\n");
  CHECK(said_of(kInOrder + "expect count(3) == 3").find("[argument-kind]") != std::string::npos);
}
