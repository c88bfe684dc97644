// The Program, its proof and its price, on tables small enough to check by hand and on random ones.
#include "doctest/doctest.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "compiler/lower.h"
#include "compiler/table_needs.h"
#include "compiler/verify.h"
#include "scheduler/pricer/straight_line.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"
#include "tests/unit/support/costs.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

Ticks makespan(const Timeline& times) { return *std::max_element(times.end.begin(), times.end.end()); }

Ticks price(const Schedule& schedule, const Table& table) {
  const Costs costs = test::costs_of(schedule);
  return makespan(simulate(lower(schedule, table, start_times(schedule, table, costs)), costs));
}

/// All that core/program.h promises of an order and its waits.
void check_program(const Program& program) {
  REQUIRE(program.order.size() == program.nodes());
  REQUIRE(program.waits.size() == program.nodes());
  REQUIRE(program.reads.size() == program.table.size());
  REQUIRE(program.writes.size() == program.table.size());
  std::vector<std::uint32_t> rank(program.nodes(), UINT32_MAX);
  for (std::uint32_t i = 0; i < program.order.size(); ++i) {
    CHECK(rank[program.order[i].value] == UINT32_MAX);
    rank[program.order[i].value] = i;
  }
  for (std::uint32_t node = 0; node < program.nodes(); ++node)
    for (NodeId before : program.waits[node]) CHECK(rank[before.value] < rank[node]);
  for (std::uint32_t d = 0; d < program.table.devices(); ++d) {
    const auto row = program.issue[d];
    for (std::size_t i = 1; i < row.size(); ++i) CHECK(rank[row[i - 1].value] < rank[row[i].value]);
  }
  for (std::uint32_t m = 1; m < program.messages.size(); ++m)
    CHECK(rank[program.node(MessageId(m - 1)).value] < rank[program.node(MessageId(m)).value]);
}

/// What lies in a slot, from the start of what writes it to the end of the last that reads it.
struct Life {
  std::uint32_t device = 0;
  std::uint16_t payload = 0;
  std::uint32_t slot = 0;
  Ticks begin = 0;
  Ticks end = 0;
  friend auto operator<=>(const Life&, const Life&) = default;
};

/// Nothing is written into a slot while it holds what is still to be read.
void check_slots(const Schedule& schedule, const Program& program, const Timeline& times) {
  const Table& table = program.table;
  std::vector<Life> lives;
  std::vector<std::vector<Life>> written(table.size());
  for (std::uint32_t position = 0; position < table.size(); ++position)
    for (const SlotUse& use : program.writes[position])
      written[position].push_back({table.device_of(position).value, use.payload, use.slot, times.start[position], 0});
  const auto read = [&](std::uint32_t producer, std::uint16_t payload, Ticks end) {
    for (Life& life : written[producer])
      if (life.payload == payload) life.end = std::max(life.end, end);
  };
  for (std::uint32_t m = 0; m < program.messages.size(); ++m) {
    const Message& message = program.messages[m];
    const NodeId node = program.node(MessageId(m));
    if (message.payload == 0) continue;
    read(message.producer, message.payload, times.end[node.value]);
    lives.push_back({program.edges[message.edge.value].target.value, message.payload, message.in_slot,
                     times.start[node.value], times.end[message.last_consumer]});
  }
  const TableNeeds needs(schedule, table);
  for (std::uint32_t position = 0; position < table.size(); ++position)
    needs.for_each(position, [&](std::uint32_t producer, std::uint16_t payload) {
      if (payload != 0 && table.device_of(producer) == table.device_of(position))
        read(producer, payload, times.end[position]);
    });
  for (const std::vector<Life>& row : written) lives.insert(lives.end(), row.begin(), row.end());
  std::sort(lives.begin(), lives.end());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const Life& life = lives[i];
    CHECK(life.begin <= life.end);
    CHECK(life.slot < program.slots[DeviceId(life.device)].by_payload[life.payload]);
    if (i == 0 || std::tie(lives[i - 1].device, lives[i - 1].payload, lives[i - 1].slot) !=
                      std::tie(life.device, life.payload, life.slot))
      continue;
    CHECK(lives[i - 1].end <= life.begin);
  }
}

}  // namespace

TEST_CASE("P=4, M=8, unit costs: makespans and stashes") {
  Schedule schedule = test::training(4, 1, 8);
  const Table gpipe = test::gpipe(schedule);
  const Table one_f_one_b = test::one_f_one_b(schedule);
  CHECK(price(schedule, gpipe) == 33);
  CHECK(price(schedule, one_f_one_b) == 33);
  const Costs costs = test::costs_of(schedule);
  const Program program = lower(schedule, one_f_one_b, start_times(schedule, one_f_one_b, costs));
  for (std::uint32_t d = 0; d < 4; ++d) CHECK(program.slots[DeviceId(d)].stash == 4 - d);
  // Every microbatch crosses three borders, forwards and backwards.
  CHECK(program.messages.size() == 48);
  CHECK(program.edges.size() == 6);

  test::set_costs(schedule, {.message = 1});
  CHECK(price(schedule, gpipe) == 39);
  CHECK(price(schedule, one_f_one_b) == 49);
}

TEST_CASE("closed forms of GPipe and 1F1B hold with messages and uneven costs") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t p = 2 + static_cast<std::int64_t>(random() % 6);
    const std::int64_t m = p + static_cast<std::int64_t>(random() % 12);
    const std::int64_t f = 1 + static_cast<std::int64_t>(random() % 20);
    const std::int64_t b = 2 + static_cast<std::int64_t>(random() % 19);
    const std::int64_t c = static_cast<std::int64_t>(random() % 7);
    CAPTURE(p);
    CAPTURE(m);
    CAPTURE(c);
    const Schedule schedule = test::training(static_cast<std::uint32_t>(p), 1, static_cast<std::uint32_t>(m),
                                             {.f = f, .i = 1, .w = b - 1, .message = c});
    CHECK(price(schedule, test::gpipe(schedule)) == (m + p - 1) * (f + b) + 2 * (p - 1) * c);
    const std::int64_t x = m - p;
    CHECK(price(schedule, test::one_f_one_b(schedule)) ==
          (m + p - 1) * (f + b) + c * (4 * (p - 1) - 2 + 2 * (x - (x + p - 2) / p)));
  }
}

TEST_CASE("random tables: the program finishes unbuffered, keeps its promises, and no slot delays anything") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    // Costs of nothing make ties: ops and messages that start and end at one time.
    Schedule schedule = test::training(1 + below(4), 1 + below(3), 1 + below(7),
                                       {.f = below(4), .i = below(3), .w = below(3), .message = below(3)});
    schedule.costs.message[2] = below(3);
    if (seed % 3 == 0) test::set_link_costs(schedule, 1, [&] { return below(4); });
    if (seed % 3 == 1) schedule.costs.message = test::sized_message_costs<Rational>(schedule, [&] { return below(4); });
    const Table table = test::random_table(schedule, seed);
    Diagnostics sink;
    REQUIRE(verify(schedule, table, sink));
    const Costs costs = test::costs_of(schedule);
    const Starts starts = start_times(schedule, table, costs);
    const Program program = lower(schedule, table, starts);
    check_program(program);
    CHECK(verify(program, schedule, sink));
    const Timeline times = simulate(program, costs);
    CHECK(std::equal(starts.start.begin(), starts.start.end(), times.start.begin()));
    CHECK(std::equal(starts.end.begin(), starts.end.end(), times.end.begin()));
    check_slots(schedule, program, times);

    // Other costs over the same program: slots may delay, but never collide, and it still finishes.
    test::set_costs(schedule, {.f = 1 + below(9), .i = 1 + below(9), .w = 1 + below(9), .message = below(9)});
    const Costs others = test::costs_of(schedule);
    const Timeline other_times = simulate(program, others);
    check_slots(schedule, program, other_times);
    CHECK(makespan(other_times) >=
          makespan(simulate(lower(schedule, table, start_times(schedule, table, others)), others)));
  }
}

TEST_CASE("the unit of time changes nothing in a program: starts are sorted in one pass or in several") {
  const Schedule schedule = test::training(4, 2, 7, {.f = 3, .i = 2, .w = 1, .message = 2});
  const Table table = test::random_table(schedule, 11);
  const Starts starts = start_times(schedule, table, test::costs_of(schedule));
  const Program program = lower(schedule, table, starts);
  for (const int shift : {8, 20, 28, 40}) {
    CAPTURE(shift);
    const auto scaled = [&](Ticks value) { return value << shift; };
    Starts others;
    others.message = starts.message.map<Ticks>(scaled);
    for (const Ticks each : starts.start) others.start.push_back(scaled(each));
    for (const Ticks each : starts.end) others.end.push_back(scaled(each));
    const Program other = lower(schedule, table, others);
    CHECK(other.order == program.order);
    CHECK(other.issue.items == program.issue.items);
    CHECK(other.waits.items == program.waits.items);
    CHECK(other.reads.items == program.reads.items);
    CHECK(other.writes.items == program.writes.items);
  }
}

TEST_CASE("a straight line whose numbers pass 16 bits has the same price") {
  constexpr std::uint32_t kMicrobatches = 35'000;
  const Schedule schedule = test::training(2, 1, kMicrobatches);
  const Table table = test::one_f_one_b(schedule);
  Costs costs = test::costs_of(schedule);
  // A cost of its own for every forward: more classes than narrow steps can name.
  KindTicks& forward = costs.kinds[schedule.ops.find("F")];
  forward.values.clear();
  for (std::uint32_t i = 0; i < 2 * kMicrobatches; ++i) forward.values.push_back(1 + i % 7);
  forward.stride = {kMicrobatches, 1};
  const Starts starts = start_times(schedule, table, costs);
  CHECK(StraightLine(schedule, table, costs).price(costs).makespan ==
        *std::max_element(starts.end.begin(), starts.end.end()));
}

TEST_CASE("lowered in table order, crossing messages get stuck without buffering") {
  const Schedule schedule = test::training(2, 1, 2);
  const Table table = test::table(schedule, {"F0 F1 B0 B1", "F0 B0 F1 B1"});
  Diagnostics sink;
  REQUIRE(verify(schedule, table, sink));
  const Program program = lower_unchecked(schedule, table);
  CHECK(program.order.empty());
  CHECK(program.issue[0].size() == 8);
  // Device 0 sends F1 before it receives B0; device 1 sends B0 before it receives F1.
  CHECK_FALSE(verify(program, schedule, sink));
  REQUIRE(sink.all().size() == 1);
  CHECK(sink.all()[0].kind == "deadlock");
  CHECK(sink.all()[0].message == "devices 0 and 1 wait for each other");
  REQUIRE(sink.all()[0].notes.size() == 3);
  CHECK(sink.all()[0].notes[0] == "device 0 sends the activation of `F1` for `F1` to device 1");
  CHECK(sink.all()[0].notes[1] == "device 1 sends the gradient of `B0` for `B0` to device 0");
}

TEST_CASE("a backward before its forward, lowered unchecked, waits for itself") {
  const Schedule schedule = test::training(1, 1, 1);
  const Table table = test::table(schedule, {"B0 F0"});
  Diagnostics sink;
  CHECK_FALSE(verify(lower_unchecked(schedule, table), schedule, sink));
  REQUIRE(sink.all().size() == 1);
  CHECK(sink.all()[0].message == "device 0 waits for itself");
  CHECK(sink.all()[0].notes[0] == "device 0 has come to `B0`, which needs `F0` on device 0");
}

TEST_CASE("random tables lowered unchecked keep their rows and their slots") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Schedule schedule = test::training(1 + seed % 4, 1 + seed % 3, 1 + seed % 5);
    const Table table = test::random_table(schedule, seed);
    const Program program = lower_unchecked(schedule, table);
    Diagnostics sink;
    // With one device there is nothing to wait for; else it may or may not finish, but it ends with an answer.
    const bool finishes = verify(program, schedule, sink);
    if (schedule.devices == 1) CHECK(finishes);
    CHECK(finishes == sink.all().empty());
    for (const Message& message : program.messages) {
      CHECK(message.out_slot < program.slots[program.edges[message.edge.value].source].by_payload[message.payload]);
      CHECK(message.in_slot < program.slots[program.edges[message.edge.value].target].by_payload[message.payload]);
    }
  }
}

}  // namespace stave
