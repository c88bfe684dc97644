#include "executor/plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "make_program.h"

namespace stave {
namespace {

using test::make;

std::string refusal(const Program& p) {
  const Result<Plan> plan = make_plan(p, true);
  return plan.ok() ? "" : plan.failure().message;
}

TEST_CASE("what is no training step is refused") {
  test::Order order = test::one_f_one_b(2, 2);
  CHECK(refusal(make(order, 2, 2)).empty());
  order = test::split_1f1b(2, 2, false);
  order[1].pop_back();
  CHECK(refusal(make(order, 2, 2)).find("stage 1, microbatch 1 is not complete") != std::string::npos);
  order = test::one_f_one_b(2, 2);
  order[1].push_back({'W', 1, 0});
  CHECK(refusal(make(order, 2, 2)) == "W(1, 0) repeats work that another op has done");
  order = {{{'F', 0, 0}, {'B', 0, 0}}, {{'F', 0, 1}, {'B', 0, 1}}};
  const Result<Plan> replicas = make_plan(make(order, 1, 2), true);
  REQUIRE(replicas);
  CHECK(replicas.value().model.devices[StageId(0)] == std::vector<DeviceId>{DeviceId(0), DeviceId(1)});
  order = {{{'F', 0, 0}}, {{'B', 0, 0}}};
  CHECK(refusal(make(order, 1, 1)) ==
        "microbatch 0 meets stage 0 on device 0 and on device 1; its activations stay on one");
}

TEST_CASE("a program that contradicts itself is refused, not run") {
  const Program good = make(test::one_f_one_b(3, 4), 3, 4);
  const auto broken = [&](auto change) {
    Program p = good;
    change(p);
    return !refusal(p).empty();
  };
  CHECK(broken([](Program& p) { p.messages[0].in_slot = 99; }));
  CHECK(broken([](Program& p) { p.messages[0].edge = EdgeId(99); }));
  CHECK(broken([](Program& p) { p.messages[0].consumer = 9999; }));
  CHECK(broken([](Program& p) { std::swap(p.messages[0].producer, p.messages[0].consumer); }));
  CHECK(broken([](Program& p) { p.waits.items[0] = NodeId(9999); }));
  CHECK(broken([](Program& p) { p.waits.first.pop_back(); }));
  CHECK(broken([](Program& p) { p.reads.items[0].slot = 99; }));
  CHECK(broken([](Program& p) { p.writes.items[0].payload = 9; }));
  CHECK(broken([](Program& p) { p.stash[3] = 99; }));
  CHECK(broken([](Program& p) { p.stash[3] = UINT32_MAX; }));
  CHECK(broken([](Program& p) { p.slots.resize(1); }));
  CHECK(broken([](Program& p) { p.table.entries[0] = OpId(9999); }));
  CHECK(broken([](Program& p) { p.table.first.back() = 3; }));
  CHECK(broken([](Program& p) { p.issue.items[0] = NodeId(9999); }));
  CHECK(broken([](Program& p) { p.payloads[1] = "something"; }));
}

TEST_CASE("nodes that wait for one another are refused, so that no run hangs") {
  Program p = make(test::one_f_one_b(2, 2), 2, 2);
  Rows<NodeId> waits;
  for (std::uint32_t n = 0; n < p.nodes(); ++n) {
    waits.items.insert(waits.items.end(), p.waits[n].begin(), p.waits[n].end());
    // The first op of device 0 waits for the last one of device 1.
    if (n == 0) waits.items.push_back(NodeId(p.table.size() - 1));
    waits.end_row();
  }
  p.waits = waits;
  CHECK(refusal(p) == "the program cannot finish: F(0, 0) on device 0 waits for ever");
}

// A dropped wait is a race, which is the point; the thread sanitizer would stop at it.
#if !defined(__SANITIZE_THREAD__)
// Takes one wait of the program away.
Program without(const Program& good, std::uint32_t dropped) {
  Program p = good;
  Rows<NodeId> waits;
  std::uint32_t seen = 0;
  for (std::uint32_t n = 0; n < good.nodes(); ++n) {
    for (NodeId before : good.waits[n])
      if (seen++ != dropped) waits.items.push_back(before);
    waits.end_row();
  }
  p.waits = waits;
  return p;
}

// Integer stages of which one is slow to end its forwards.
struct Slow : IntegerWorkload {
  struct Late : test::Wrapped {
    void forward(const Part& part, const std::byte* x, std::byte* y) override {
      const std::atomic<bool> never = false;
      sleep_until_ns(now_ns() + by_ns, never);
      inner->forward(part, x, y);
    }
    Ticks by_ns = 0;
  };
  explicit Slow(std::uint32_t slow_stage, Ticks by_ns = 2'000'000) : slow(slow_stage) { late.by_ns = by_ns; }
  Stage* stage(StageId s, std::uint32_t replica = 0) override {
    if (s.value != slow) return IntegerWorkload::stage(s, replica);
    late.inner = IntegerWorkload::stage(s, replica);
    return &late;
  }
  std::uint32_t slow;
  Late late;
};

TEST_CASE("a wait for data that is missing is found at the first read") {
  const Program good = make(test::one_f_one_b(2, 2), 2, 2);
  for (std::uint32_t i = 0; i < good.waits.items.size(); ++i) {
    // The wait of device 1's first op for its message.
    if (i < good.waits.first[good.table.first[1]] || i >= good.waits.first[good.table.first[1] + 1]) continue;
    // Longer than a busy host keeps a thread waiting.
    Slow slow(0, 200'000'000);
    const Result<RunReport> report = run(without(good, i), slow, RunOptions{});
    REQUIRE(!report);
    CHECK(report.failure().message ==
          "F(1, 0) on device 1, step 1: slot 0 holds nothing, but the activation of F(0, 0) of step 1 (384 bytes) "
          "is due");
  }
}

TEST_CASE("a wait for a slot that is missing is found: data is written over before it was read") {
  // GPipe through as few slots as there can be: the second activation may not arrive before the first is read. With a
  // slow first reader and that wait gone, it does.
  const Program good = make(test::gpipe(2, 6), 2, 6);
  std::uint32_t dropped = 0;
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < good.waits.items.size(); ++i) {
    std::uint32_t waiter = 0;
    while (good.waits.first[waiter + 1] <= i) ++waiter;
    // Messages that wait for the reader of what lay in their slot.
    if (!good.is_message(NodeId(waiter)) || good.is_message(good.waits.items[i])) continue;
    ++dropped;
    for (int attempt = 0; attempt < 20; ++attempt) {
      Slow slow(1);
      const Result<RunReport> report = run(without(good, i), slow, RunOptions{});
      if (report.ok()) continue;
      CHECK(report.failure().message.find("is due") != std::string::npos);
      ++found;
      break;
    }
  }
  CHECK(dropped > 0);
  CHECK(found > 0);
}
#endif

TEST_CASE("a declared op is run as a wait of its cost and named") {
  test::Order order = test::one_f_one_b(2, 2);
  Table table = test::make_table(order, 2, 2);
  OpKind kind;
  kind.name = "X";
  kind.indices = {{"s", IndexRole::Stage, 2}, {"m", IndexRole::Microbatch, 2}};
  REQUIRE(table.ops.add(kind));
  const std::uint32_t index[] = {1, 0};
  table.entries.push_back(table.ops.id(table.ops.find("X"), index));
  ++table.first.back();
  const Program p = test::lower_by_hand(table, 2, 2);
  IntegerWorkload integers;
  RunOptions options;
  options.clock = Clock::Virtual;
  options.cost_ns.assign(p.nodes(), 7);
  const Result<RunReport> report = run(p, integers, options);
  REQUIRE(report);
  CHECK(report.value().declared == std::vector<std::string>{"X"});
  const std::uint32_t last = p.table.size() - 1;
  CHECK(report.value().timeline.end[last] - report.value().timeline.start[last] == 7);
}

TEST_CASE("an op on a stream runs beside the computing of its device") {
  Table table = test::make_table(test::one_f_one_b(2, 3), 2, 3);
  OpKind kind;
  kind.name = "Out";
  kind.stream = "copy";
  kind.indices = {{"s", IndexRole::Stage, 2}};
  REQUIRE(table.ops.add(kind));
  const std::uint32_t index[] = {0};
  // After the first op of device 0.
  const OpId out = table.ops.id(table.ops.find("Out"), index);
  table.entries.insert(table.entries.begin() + 1, out);
  for (std::uint32_t d = 0; d < 2; ++d) ++table.first[d + 1];
  Program p = test::lower_by_hand(table, 2, 3);
  IntegerWorkload integers;
  RunOptions options;
  options.clock = Clock::Virtual;
  options.steps = 2;
  options.cost_ns.assign(p.nodes(), 0);
  options.cost_ns[1] = 1'000'000'000;
  const Result<RunReport> report = run(p, integers, options);
  REQUIRE_MESSAGE(report, report.failure().message);
  const Timeline& t = report.value().timeline;
  CHECK(t.end[1] - t.start[1] == 1'000'000'000);
  for (std::uint32_t position = 2; position < p.table.size(); ++position) CHECK(t.end[position] < t.end[1]);
  CHECK(report.value().declared == std::vector<std::string>{"Out"});
}

TEST_CASE("an overlapped pair starts when both may and ends as one") {
  test::Order order = test::one_f_one_b(2, 4);
  Table table = test::make_table(order, 2, 4);
  // F of device 0 that comes before a backward, with it.
  std::uint32_t first = 0;
  const auto is = [&](std::uint32_t at, const char* name) { return table.ops.kind(table.entries[at]).name == name; };
  while (!is(first, "F") || !is(first + 1, "B")) ++first;
  REQUIRE(first + 1 < table.first[1]);
  Program p = test::lower_by_hand(table, 2, 4);
  p.table.blocks.items = {first, first + 1};
  p.table.blocks.end_row();
  IntegerWorkload integers;
  IntegerWorkload plain;
  RunOptions options;
  options.clock = Clock::Virtual;
  options.cost_ns.assign(p.nodes(), 0);
  Result<RunReport> report = run(p, integers, options);
  REQUIRE_MESSAGE(report, report.failure().message);
  const Timeline& t = report.value().timeline;
  CHECK(t.start[first] == t.start[first + 1]);
  CHECK(t.end[first] == t.end[first + 1]);
  CHECK(std::ranges::count_if(report.value().lengths, [](const TypicalLength& m) { return m.with.valid(); }) == 1);
  REQUIRE(run_reference(plain, plain_partition(2, 4), 1));
  CHECK(compare_gradients(p.table, integers, plain).agrees);

  p.table.blocks.items = {first, first + 2};
  CHECK(refusal(p) == "the program contradicts itself: a pair whose ops do not stand next to each other");
  p.table.blocks.items = {first, 9999};
  CHECK(refusal(p) == "the program contradicts itself: a block of an op that does not exist");
  // The backward of a pair may not need what its forward makes.
  order = {{{'F', 0, 0}, {'B', 0, 0}}, {{'F', 1, 0}, {'B', 1, 0}}};
  p = test::make(order, 2, 1);
  p.table.blocks.items = {0, 1};
  p.table.blocks.end_row();
  CHECK(refusal(p).find("the program cannot finish: ") == 0);
}

}  // namespace
}  // namespace stave
