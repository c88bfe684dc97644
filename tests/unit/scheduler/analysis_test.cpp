// Figures and causes of idle time, on tables small enough to check by hand and on random ones.
#include "scheduler/analysis.h"

#include <numeric>
#include <vector>

#include "compiler/lower.h"
#include "doctest/doctest.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"
#include "tests/unit/support/costs.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

struct Priced {
  Program program;
  Timeline times;
  Report report;
};

Priced price(const Schedule& schedule, const Table& table) {
  const Costs costs = test::costs_of(schedule);
  Priced result;
  result.program = lower(schedule, table, start_times(schedule, table, costs));
  result.times = simulate(result.program, costs);
  result.report = analyse(schedule, result.program, result.times);
  return result;
}

std::vector<Ticks> idle(const Report& report, std::uint32_t device) {
  std::vector<Ticks> result;
  for (const IdleCauseInfo& each : kIdleCauses)
    result.push_back(report.devices[DeviceId(device)].idle[static_cast<std::size_t>(each.cause)]);
  return result;
}

MetricQuery query(Metric metric, std::optional<std::uint32_t> device = {}, std::optional<IdleCause> cause = {}) {
  MetricQuery result;
  result.metric = metric;
  result.first = device;
  result.cause = cause;
  return result;
}

}  // namespace

TEST_CASE("1F1B, P=4, M=8, unit costs: every figure") {
  const Schedule schedule = test::training(4, 1, 8);
  const Report report = price(schedule, test::one_f_one_b(schedule)).report;
  CHECK(report.makespan == 33);
  CHECK(report.iteration == 33);
  CHECK(report.span == 33);
  // (P - 1) / (M + P - 1).
  CHECK(report.bubble == test::rational(3, 11));
  CHECK(report.span_bubble == test::rational(3, 11));
  CHECK(report.messages == 48);
  REQUIRE(report.peak_memory);
  for (std::uint32_t d = 0; d < 4; ++d) {
    const DeviceReport& device = report.devices[DeviceId(d)];
    CHECK(device.busy == 24);
    CHECK(device.first == d);
    CHECK(device.last == 33 - 2 * d);
    CHECK(device.peak_activations == 4 - d);
    CHECK((*report.peak_memory)[DeviceId(d)].size == Rational(4 - d));
  }
  CHECK(report.count[schedule.ops.find("F")] == 32);
  CHECK(report.count[schedule.ops.find("B")] == 32);
  CHECK(report.count[schedule.ops.find("I")] == 0);
}

TEST_CASE("GPipe on two devices with messages: the causes by hand") {
  // 0: F0 F1 . . . . B0 B0 . B1 B1, times 0 1 | wait | ...; message 1.
  //   device 0: F0 0-1, F1 1-2, B0 7-9, B1 9-11.  device 1: F0 2-3, F1 3-4, B0 4-6, B1 6-8.
  const Schedule schedule = test::training(2, 1, 2, {.message = 1});
  const Priced priced = price(schedule, test::gpipe(schedule));
  CHECK(priced.report.makespan == 11);
  // Device 0 has no forward left at 2: it drains until B0 ends at 6, then its message takes one.
  CHECK(idle(priced.report, 0) == std::vector<Ticks>{0, 4, 0, 0, 0, 1, 0, 0, 0, 0});
  CHECK(idle(priced.report, 1) == std::vector<Ticks>{2, 0, 3, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("waiting for a gradient and for a forward") {
  // 0: F0 B0 F1 B1. 1: F0 B0 F1 B1. No messages: F0 0-1, then device 1: F0 1-2, B0 2-4; device 0: B0 4-6, F1 6-7;
  // device 1: F1 7-8, B1 8-10; device 0: B1 10-12.
  const Schedule schedule = test::training(2, 1, 2);
  const Report report = price(schedule, test::table(schedule, {"F0 B0 F1 B1", "F0 B0 F1 B1"})).report;
  CHECK(report.makespan == 12);
  CHECK(idle(report, 0) == std::vector<Ticks>{0, 3, 0, 0, 3, 0, 0, 0, 0, 0});
  CHECK(idle(report, 1) == std::vector<Ticks>{1, 0, 2, 3, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("memory by halves: I gives back one, W the other; weights count") {
  Schedule schedule = test::training(1, 2, 2);
  schedule.costs.weights = {Rational(4), test::rational(1, 3)};
  const Table table = test::table(schedule, {"0F0 1F0 1I0 0F1 1F1 1W0 1B1 0B0 0B1"});
  const Report report = price(schedule, table).report;
  REQUIRE(report.peak_memory);
  // 0F0 1, 1F0 2, 1I0 1.5, 0F1 2.5, 1F1 3.5: the most; and 4 + 1/3 of weights.
  CHECK((*report.peak_memory)[DeviceId(0)].size == test::rational(47, 6));
  CHECK((*report.peak_memory)[DeviceId(0)].position == 4);
  CHECK(report.devices[DeviceId(0)].peak_activations == 4);
}

TEST_CASE("figures as expect asks for them") {
  const Schedule schedule = test::training(4, 1, 8, {.f = test::rational(1, 2), .i = 1, .w = 1, .message = 0});
  const Report report = price(schedule, test::gpipe(schedule)).report;
  const ReportMetrics metrics(report);
  CHECK(metrics.value(query(Metric::Makespan)) == test::rational(55, 2));
  CHECK(metrics.value(query(Metric::Busy, 2)) == Rational(20));
  CHECK(metrics.value(query(Metric::Idle, 2)) == test::rational(15, 2));
  CHECK(metrics.value(query(Metric::Idle, 2, IdleCause::Filling)) == Rational(1));
  CHECK(metrics.value(query(Metric::Idle, 2, IdleCause::Link)) == Rational(0));
  CHECK_FALSE(metrics.value(query(Metric::Bound)));
  CHECK(metrics.value(query(Metric::PeakActivations, 1)) == Rational(8));
}

TEST_CASE("nothing takes time: no bubble, and no division by zero") {
  const Schedule schedule = test::training(2, 1, 2, {.f = 0, .i = 0, .w = 0, .message = 0});
  const Report report = price(schedule, test::gpipe(schedule)).report;
  CHECK(report.makespan == 0);
  CHECK(report.bubble == Rational(0));
  CHECK(report.span_bubble == Rational(0));
}

TEST_CASE("random tables: causes sum to the makespan less the busy time, exactly") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    Schedule schedule = test::training(1 + below(4), 1 + below(3), 1 + below(7),
                                       {.f = below(4), .i = below(3), .w = below(3), .message = below(4)});
    Priced priced = price(schedule, test::random_table(schedule, seed));
    for (int measured = 0; measured < 2; ++measured) {
      for (const DeviceReport& device : priced.report.devices) {
        Ticks sum = 0;
        for (Ticks part : device.idle) {
          CHECK(part >= 0);
          sum += part;
        }
        CHECK(sum == priced.report.makespan - device.busy);
      }
      // A measured timeline: everything later than need be.
      for (std::size_t node = 0; node < priced.times.start.size(); ++node) {
        priced.times.start[node] = 3 * priced.times.start[node] + 1;
        priced.times.end[node] *= 3;
        priced.times.end[node] = std::max(priced.times.end[node], priced.times.start[node]);
      }
      priced.report = analyse(schedule, priced.program, priced.times);
    }
  }
}

}  // namespace stave
