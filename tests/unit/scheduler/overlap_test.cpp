// How much of the messages' time is hidden, by hand and within its bounds.
#include "scheduler/overlap.h"

#include "compiler/lower.h"
#include "doctest/doctest.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"
#include "tests/unit/support/costs.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

MessageTime of(const Schedule& schedule, const Table& table) {
  const Costs costs = test::costs_of(schedule);
  const Program program = lower(schedule, table, start_times(schedule, table, costs));
  return message_time(program, simulate(program, costs));
}

}  // namespace

TEST_CASE("with one microbatch nothing computes while a message is under way") {
  const Schedule schedule = test::training(2, 1, 1, {1, 1, 1, 1});
  const MessageTime time = of(schedule, test::gpipe(schedule));
  CHECK(time.under_way == 2);
  CHECK(time.exposed == 2);
  CHECK(time.hidden() == 0);
}

TEST_CASE("with several only the first of each direction is waited for") {
  // F 0-4 here, 2-6 there, where B ends at 8, 10, 12 and 14; the gradients come at 9, 11, 13 and 15.
  const Schedule schedule = test::training(2, 1, 4, {1, 1, 1, 1});
  const MessageTime time = of(schedule, test::gpipe(schedule));
  CHECK(time.under_way == 8);
  CHECK(time.exposed == 2);
  CHECK(time.hidden() == doctest::Approx(0.75));
}

TEST_CASE("what is hidden is a share, also where a message is waited for at both of its ends") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    // Slots are shared as if messages took nothing, so that one that takes long is waited for by who sends it, too.
    Schedule schedule = test::training(static_cast<std::uint32_t>(2 + seed % 3), 2, 4);
    const Table table = seed % 2 == 0 ? test::gpipe(schedule) : test::random_table(schedule, seed);
    const Program program = lower(schedule, table, start_times(schedule, table, test::costs_of(schedule)));
    test::set_costs(schedule, {1, 1, 1, 20});
    const MessageTime time = message_time(program, simulate(program, test::costs_of(schedule)));
    CHECK(time.exposed >= 0);
    CHECK(time.exposed <= time.under_way);
  }
}

}  // namespace stave
