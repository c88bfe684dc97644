// Comparing: ranks, turns and crossings of plain numbers, and work, accounts and reasons of small schedules.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "compiler/lower.h"
#include "scheduler/compare/account.h"
#include "scheduler/compare/ranking.h"
#include "scheduler/compare/work.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"
#include "tests/unit/support/training.h"

namespace stave {
namespace {

const std::optional<Rational> kNone;

Values values(std::initializer_list<std::int64_t> numbers) {
  Values result;
  for (const std::int64_t each : numbers) result.push_back(each < 0 ? kNone : std::optional<Rational>(each));
  return result;
}

TEST_CASE("equal values share a rank, the next one counts them, and who has no value has none") {
  CHECK(ranks_of(values({33, 27, -1, 33, 40, 27})) == std::vector<std::uint32_t>{3, 1, 0, 3, 5, 1});
  CHECK(ranks_of({}).empty());
}

TEST_CASE("a turn is a reversal or a parting of equals, the widest first; closing up is none") {
  // 0 passes 1, 0 and 2 were equal, 3 passes 2, and 1 and 3 become equal.
  const std::vector<Turn> turns = turns_between(values({33, 27, 33, 60}), values({49, 89, 97, 89}));
  CHECK(turns == std::vector<Turn>{{0, 2, true}, {0, 1, false}, {3, 2, false}});
}

TEST_CASE("a crossing spans the points at which two are equal or one has no value") {
  const std::vector<Values> points = {values({1, 2}), values({2, 2}), values({-1, 3}),
                                      values({5, 4}), values({6, 5}), values({6, 7})};
  CHECK(crossings_of(points) == std::vector<Crossing>{{1, 0, 0, 3}, {0, 1, 4, 5}});
  CHECK(crossings_of({}).empty());
  CHECK(crossings_of({values({3, 3}), values({4, 4})}).empty());
}

TEST_CASE("touching without passing is no crossing") {
  CHECK(crossings_of({values({1, 2}), values({2, 2}), values({3, 4})}).empty());
}

TEST_CASE("work counts the forwards of a microbatch, and scaling leaves the messages") {
  Schedule schedule = test::training(2, 3, 4, {test::rational(1, 2), 1, 1, 7});
  const std::optional<Work> work = work_of(schedule);
  REQUIRE(work);
  CHECK(work->forwards == Rational(6));
  CHECK(work->time == Rational(3));
  REQUIRE(scale(schedule.costs, test::rational(1, 3)));
  CHECK(schedule.costs.duration[KindId(0)].values[0] == test::rational(1, 6));
  CHECK(schedule.costs.duration[KindId(3)].values[0] == test::rational(2, 3));
  CHECK(schedule.costs.message[1] == Rational(7));
  CHECK(!scale(schedule.costs, Rational(INT64_MAX)));
  CHECK(schedule.costs.duration[KindId(3)].values[0] == test::rational(2, 3));
}

Account account(const Schedule& schedule, const Table& table) {
  Diagnostics sink;
  const Costs costs = *make_costs(schedule, sink);
  const Program program = lower(schedule, table, start_times(schedule, table, costs));
  const Timeline timeline = simulate(program, costs);
  return account_of(program, timeline, costs, analyse(schedule, program, timeline));
}

TEST_CASE("reasons sum to the difference, and the slow link is found") {
  // Computed from the rules apart: P = 4, M = 8, unit costs, the link between devices 1 and 2 takes 8: 49 and 97.
  Schedule schedule = test::training(4, 1, 8);
  for (const std::size_t payload : {1, 2}) {
    std::vector<Rational> links(16, Rational(0));
    links[1 * 4 + 2] = links[2 * 4 + 1] = 8;
    schedule.costs.message.set_links(payload, 4, std::make_shared<const LinkCosts<Rational>>(links));
  }
  const Account shorter = account(schedule, test::gpipe(schedule));
  const Account longer = account(schedule, test::one_f_one_b(schedule));
  CHECK(shorter.makespan == doctest::Approx(49));
  CHECK(longer.makespan == doctest::Approx(97));
  for (const Account& each : {shorter, longer}) {
    double sum = each.busy;
    for (const double idle : each.idle) sum += idle;
    CHECK(sum == doctest::Approx(each.makespan));
    CHECK(each.path_op_time + each.path_message_time == doctest::Approx(each.makespan));
  }
  double difference = 0;
  for (const Reason& each : reasons(shorter, longer)) difference += each.more;
  CHECK(difference == doctest::Approx(48).epsilon(0.02));
  const std::optional<SlowLink> link = slow_link(shorter, longer);
  REQUIRE(link);
  CHECK(link->longer.a == 1);
  CHECK(link->longer.b == 2);
  CHECK(link->shorter.count == 2);
  CHECK(link->longer.count == 8);
  CHECK(link->longer.time == doctest::Approx(64));
  CHECK(!slow_link(longer, shorter));
}

}  // namespace
}  // namespace stave
