// Lower bounds: never above the optimum of small cases, mostly equal to it, and the figures of known schedules.
#include "scheduler/bounds.h"

#include <random>
#include <vector>

#include "doctest/doctest.h"
#include "scheduler/bounds/instance.h"
#include "scheduler/bounds/jackson.h"
#include "tests/unit/scheduler/every_order.h"
#include "tests/unit/support/costs.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

/// All forwards, then all backwards: some order of the entries, whatever the limits.
Table some_order(const Schedule& schedule, bool split) {
  std::vector<std::vector<OpId>> rows(schedule.devices);
  const auto put = [&](char letter, std::uint32_t s, std::uint32_t m) {
    const OpId id = test::op(schedule, letter, s, m);
    rows[schedule.device_of[id.value]].push_back(id);
  };
  for (std::uint32_t s = 0; s < schedule.stages; ++s)
    for (std::uint32_t m = 0; m < schedule.microbatches; ++m) put('F', s, m);
  for (std::uint32_t s = schedule.stages; s-- > 0;)
    for (std::uint32_t m = 0; m < schedule.microbatches; ++m) {
      put(split ? 'I' : 'B', s, m);
      if (split) put('W', s, m);
    }
  return test::table_of(schedule, rows);
}

LowerBound bound_of(const Schedule& schedule, bool split = true) {
  return lower_bound(schedule, some_order(schedule, split), test::costs_of(schedule));
}


enum class Memory { Whole, Halves };

void set_limit(Schedule& schedule, Memory memory, Rational limit) {
  for (DeviceOrder& order : schedule.orders)
    (memory == Memory::Whole ? order.activation_limit : order.memory_limit) = limit;
}

/// The same limits for the enumeration, counted in halves.
std::vector<test::SmallLimit> small_limits(const Schedule& schedule, const Table& table, Memory memory, Rational limit) {
  std::vector<test::SmallLimit> result;
  for (std::uint32_t d = 0; d < schedule.devices; ++d) {
    test::SmallLimit mine;
    mine.device = d;
    mine.most = floor(*multiply(limit, 2));
    for (OpId op : table.entries) {
      const char letter = table.ops.kind(op).name[0];
      mine.taken.push_back(letter == 'F' ? 2 : 0);
      const bool whole = memory == Memory::Whole;
      mine.given.push_back(letter == 'B' ? 2 : letter == 'W' ? (whole ? 2 : 1) : letter == 'I' ? (whole ? 0 : 1) : 0);
    }
    result.push_back(std::move(mine));
  }
  return result;
}

/// Random costs, the same on all stages or not.
void set_random_costs(Schedule& schedule, std::mt19937_64& random, bool even) {
  const auto upto = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + random() % (high - low + 1));
  };
  const std::int64_t f = upto(6, 20), i = upto(6, 20), w = upto(3, 20);
  const auto by_stage = [&](std::int64_t base) {
    IndexedValues values;
    values.stride[0] = 1;
    for (std::uint32_t s = 0; s < schedule.stages; ++s) values.values.push_back(even ? base : base + upto(0, 6));
    return values;
  };
  IndexedValues both = by_stage(0);
  IndexedValues in = by_stage(i), weight = by_stage(w);
  for (std::uint32_t s = 0; s < schedule.stages; ++s) both.values[s] = *add(in.values[s], weight.values[s]);
  schedule.costs.duration[KindId(0)] = by_stage(f);
  schedule.costs.duration[KindId(1)] = in;
  schedule.costs.duration[KindId(2)] = weight;
  schedule.costs.duration[KindId(3)] = both;
  schedule.costs.message.assign(schedule.payloads.size(), upto(0, 6));
}

struct Tally {
  int cases = 0;
  int makespan_equal = 0;
  int span_equal = 0;
};

/// One random case against every order.
void try_one(Tally& tally, std::uint32_t devices, std::uint32_t chunks, std::uint32_t microbatches, bool split,
             std::mt19937_64& random) {
  Schedule schedule = test::training(devices, chunks, microbatches);
  set_random_costs(schedule, random, random() % 2 == 0);
  const Memory memory = random() % 2 == 0 ? Memory::Whole : Memory::Halves;
  // 0.75 to 1.5 times what 1F1B needs, a chunk at a time.
  const std::int64_t quarters = 3 + static_cast<std::int64_t>(random() % 4);
  Rational limit = *multiply(test::rational(quarters, 4), Rational(devices * chunks));
  // Some order must keep it.
  limit = std::max(limit, Rational(chunks));
  if (memory == Memory::Whole) limit = floor(limit);
  const bool limited = random() % 8 != 0;
  if (limited) set_limit(schedule, memory, limit);
  const Table table = some_order(schedule, split);
  const Costs costs = test::costs_of(schedule);
  const bounds::Instance data = bounds::make_instance(schedule, table, costs, bounds::Alike::Yes);
  test::EveryOrder orders(data, limited ? small_limits(schedule, table, memory, limit) : std::vector<test::SmallLimit>(),
                          true);
  const test::Optimum optimum = orders.best();
  if (optimum.makespan == INT64_MAX) return;
  const LowerBound bound = lower_bound(schedule, table, costs);
  CAPTURE(devices);
  CAPTURE(chunks);
  CAPTURE(microbatches);
  CAPTURE(split);
  CAPTURE(limited);
  CHECK(bound.makespan_by == BoundBy::Strong);
  CHECK(bound.makespan <= optimum.makespan);
  CHECK(bound.span <= optimum.span);
  ++tally.cases;
  tally.makespan_equal += bound.makespan == optimum.makespan;
  tally.span_equal += bound.span == optimum.span;
}

}  // namespace

TEST_CASE("one stage a device: never above the optimum of every order, and mostly equal to it") {
  Tally tally;
  std::mt19937_64 random(20240521);
  for (int round = 0; round < 60; ++round) {
    try_one(tally, 2, 1, 4, true, random);
    try_one(tally, 3, 1, 3, true, random);
    try_one(tally, 2, 1, 3, true, random);
    try_one(tally, 4, 1, 2, true, random);
    try_one(tally, 3, 1, 4, false, random);
  }
  MESSAGE(tally.cases, " cases, makespan equal in ", tally.makespan_equal, ", span in ", tally.span_equal);
  CHECK(tally.cases >= 250);
  CHECK(10 * tally.makespan_equal >= 9 * tally.cases);
  CHECK(10 * tally.span_equal >= 9 * tally.cases);
}

TEST_CASE("microbatches that are alike may run in their order: no other order is shorter") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    Schedule schedule = test::training(2, 1, 2 + round % 2);
    const bool split = round % 2 == 0;
    set_random_costs(schedule, random, false);
    set_limit(schedule, Memory::Halves, 2);
    const Table table = some_order(schedule, split);
    const bounds::Instance data = bounds::make_instance(schedule, table, test::costs_of(schedule), bounds::Alike::Yes);
    const auto limits = small_limits(schedule, table, Memory::Halves, 2);
    const test::Optimum rising = test::EveryOrder(data, limits, true).best();
    const test::Optimum any = test::EveryOrder(data, limits, false).best();
    CHECK(any.orders > rising.orders);
    CHECK(any.makespan == rising.makespan);
    CHECK(lower_bound(schedule, table, test::costs_of(schedule)).makespan <= any.makespan);
  }
}

TEST_CASE("messages of several sizes: never above the optimum of every order, of unlike microbatches too") {
  std::mt19937_64 random(11);
  int cases = 0, equal = 0;
  for (int round = 0; round < 60; ++round) {
    Schedule schedule = test::training(round % 3 == 0 ? 3 : 2, 1, round % 3 == 0 ? 2 : 3);
    set_random_costs(schedule, random, round % 2 == 0);
    schedule.costs.message =
        test::sized_message_costs<Rational>(schedule, [&] { return static_cast<std::uint32_t>(random() % 30); });
    const Table table = some_order(schedule, round % 4 == 0);
    const Costs costs = test::costs_of(schedule);
    const bounds::Instance data = bounds::make_instance(schedule, table, costs, bounds::Alike::No);
    const test::Optimum optimum = test::EveryOrder(data, {}, false).best();
    const LowerBound bound = lower_bound(schedule, table, costs);
    CAPTURE(round);
    CHECK(bound.makespan <= optimum.makespan);
    CHECK(bound.span <= optimum.span);
    ++cases;
    equal += bound.makespan == optimum.makespan;
  }
  MESSAGE(cases, " cases, makespan equal in ", equal);
  // Large messages of unlike sizes, under which the best order is seldom the obvious one.
  CHECK(3 * equal >= cases);
}

TEST_CASE("several chunks a device: never above the optimum of every order") {
  Tally tally;
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    try_one(tally, 2, 2, 2, false, random);
    try_one(tally, 1, 2, 3, false, random);
    try_one(tally, 1, 2, 2, true, random);
  }
  MESSAGE(tally.cases, " cases, makespan equal in ", tally.makespan_equal, ", span in ", tally.span_equal);
  CHECK(tally.cases >= 100);
}

/// The best of some orders made at random, each op as early as it can be; as good as nothing if none was possible.
test::Optimum some_orders(const bounds::Instance& data, const std::vector<test::SmallLimit>& limits, int tries,
                          std::mt19937_64& random) {
  test::Optimum result;
  std::vector<std::vector<std::uint32_t>> before(data.size());
  for (const bounds::Arc& arc : data.arcs) before[arc.to].push_back(arc.from);
  for (int round = 0; round < tries; ++round) {
    std::vector<Ticks> end(data.size(), -1);
    std::vector<Ticks> now(data.devices(), 0), first(data.devices(), -1);
    std::vector<std::int64_t> held(data.devices(), 0);
    std::uint32_t done = 0;
    for (;;) {
      std::uint32_t best = UINT32_MAX;
      Ticks best_start = 0;
      for (std::uint32_t unit = 0; unit < data.size(); ++unit) {
        const std::uint32_t d = data.device(unit);
        if (end[unit] >= 0) continue;
        if (!limits.empty() && limits[d].taken[unit] > 0 && held[d] + limits[d].taken[unit] > limits[d].most) continue;
        Ticks start = now[d];
        bool ready = true;
        for (const bounds::Arc& arc : data.arcs)
          if (arc.to == unit) {
            ready = ready && end[arc.from] >= 0;
            start = std::max(start, end[arc.from] + arc.lag);
          }
        if (!ready) continue;
        if (best == UINT32_MAX || start < best_start || (start == best_start && random() % 2 == 0) || random() % 32 == 0) {
          best = unit;
          best_start = start;
        }
      }
      if (best == UINT32_MAX) break;
      const std::uint32_t d = data.device(best);
      end[best] = now[d] = best_start + data.length[best];
      if (first[d] < 0) first[d] = best_start;
      if (!limits.empty()) held[d] += limits[d].taken[best] - limits[d].given[best];
      ++done;
    }
    if (done < data.size()) continue;
    ++result.orders;
    Ticks span = 0;
    for (std::uint32_t d = 0; d < data.devices(); ++d) span = std::max(span, now[d] - first[d]);
    result.makespan = std::min(result.makespan, *std::max_element(now.begin(), now.end()));
    result.span = std::min(result.span, span);
  }
  return result;
}

TEST_CASE("larger cases, as a loop and as a V: never above the best of some orders") {
  std::mt19937_64 random(29);
  int found = 0;
  for (int round = 0; round < 120; ++round) {
    CAPTURE(round);
    const auto upto = [&](std::uint64_t low, std::uint64_t high) {
      return static_cast<std::uint32_t>(low + random() % (high - low + 1));
    };
    const std::uint32_t devices = upto(1, 3), chunks = upto(1, 3), microbatches = upto(2, 5);
    Schedule schedule = test::training(devices, chunks, microbatches);
    set_random_costs(schedule, random, random() % 2 == 0);
    if (random() % 2 == 0)
      for (std::uint32_t op = 0; op < schedule.ops.size(); ++op) {
        const std::uint32_t s = schedule.ops.stage(OpId(op));
        const std::uint32_t at = s % (2 * devices);
        schedule.device_of[op] = static_cast<std::uint16_t>(at < devices ? at : 2 * devices - 1 - at);
      }
    const bool split = random() % 4 != 0;
    const Memory memory = random() % 2 == 0 ? Memory::Whole : Memory::Halves;
    const Rational limit = upto(chunks, 2 * devices * chunks);
    set_limit(schedule, memory, limit);
    const Table table = some_order(schedule, split);
    const Costs costs = test::costs_of(schedule);
    const bounds::Instance data = bounds::make_instance(schedule, table, costs, bounds::Alike::No);
    const test::Optimum best = some_orders(data, small_limits(schedule, table, memory, limit), 60, random);
    if (best.orders == 0) continue;
    ++found;
    const LowerBound bound = lower_bound(schedule, table, costs);
    CHECK(bound.makespan <= best.makespan);
    CHECK(bound.span <= best.span);
  }
  CHECK(found > 80);
}

TEST_CASE("even stages, F=18.5 I=18.1 W=9.3 message=0.6 ms: the bounds that zero bubble meets") {
  // Zero-bubble costs of arXiv:2401.10241, rounded; makespans in units of 0.1 ms.
  struct Row {
    std::uint32_t devices, microbatches;
    Ticks tight, loose;
  };
  for (const Row& row : {Row{4, 8, 4563, 4245}, Row{4, 12, 6399, 6081}, Row{4, 16, 8235, 7917}, Row{8, 16, 9423, 8681},
                         Row{8, 24, 13095, 12353}, Row{8, 32, 16767, 16025}})
    for (Memory memory : {Memory::Whole, Memory::Halves}) {
      CAPTURE(row.devices);
      CAPTURE(row.microbatches);
      Schedule schedule = test::training(row.devices, 1, row.microbatches, {185, 181, 93, 6});
      set_limit(schedule, memory, row.devices);
      CHECK(bound_of(schedule).makespan == row.tight);
      set_limit(schedule, memory, 2 * row.devices);
      CHECK(bound_of(schedule).makespan == row.loose);
    }
}

TEST_CASE("span with room for twice as much, same costs") {
  struct Row {
    std::uint32_t devices, microbatches;
    Ticks whole, halves;
  };
  for (const Row& row : {Row{4, 8, 4155, 4155}, Row{4, 12, 5991, 5619}, Row{4, 16, 7827, 7344}, Row{8, 16, 8595, 8595},
                         Row{8, 24, 12267, 11523}, Row{8, 32, 15939, 14688}}) {
    CAPTURE(row.devices);
    CAPTURE(row.microbatches);
    Schedule schedule = test::training(row.devices, 1, row.microbatches, {185, 181, 93, 6});
    set_limit(schedule, Memory::Whole, 2 * row.devices);
    CHECK(bound_of(schedule).span == row.whole);
    Schedule halves = test::training(row.devices, 1, row.microbatches, {185, 181, 93, 6});
    set_limit(halves, Memory::Halves, 2 * row.devices);
    CHECK(bound_of(halves).span == row.halves);
  }
}

TEST_CASE("F = I = W = 1: 3M + P - 1 for the makespan; the span loses max(0, 2P - 1 - limit)") {
  for (std::uint32_t devices = 2; devices <= 5; ++devices)
    for (std::uint32_t microbatches : {2 * devices - 1, 3 * devices})
      for (std::uint32_t limit = devices; limit <= 2 * devices; ++limit) {
        CAPTURE(devices);
        CAPTURE(microbatches);
        CAPTURE(limit);
        Schedule schedule = test::training(devices, 1, microbatches);
        set_limit(schedule, Memory::Whole, limit);
        const LowerBound bound = bound_of(schedule);
        CHECK(bound.makespan == 3 * microbatches + devices - 1);
        const std::uint32_t lost = limit < 2 * devices - 1 ? 2 * devices - 1 - limit : 0;
        CHECK(bound.span == 3 * microbatches + lost);
      }
}

TEST_CASE("adding the work of more microbatches to the bound of few would be wrong") {
  // P=10, F=I=W=1: 21 for one microbatch, and an order of two takes 23 < 21 + 3.
  CHECK(bound_of(test::training(10, 1, 1)).makespan == 21);
  CHECK(bound_of(test::training(10, 1, 2)).makespan <= 23);
}

TEST_CASE("with a full backward GPipe and 1F1B without messages are optimal") {
  const Schedule schedule = test::training(4, 1, 8);
  // (M + P - 1) * (F + B), and with messages 2 * (P - 1) more: SC 2021, arXiv:2104.04473.
  CHECK(bound_of(schedule, false).makespan == 33);
  CHECK(bound_of(test::training(4, 1, 8, {185, 181, 93, 6}), false).makespan == 11 * 459 + 36);
}

TEST_CASE("two chunks a device and half the memory: the bound uses the limit") {
  // As a loop, each device holds 4 chunks of 8: no more than 4 at a time pass, and none of it before its own W.
  Schedule schedule = test::training(4, 2, 8, {93, 91, 47, 6});
  const Ticks free = bound_of(schedule).makespan;
  set_limit(schedule, Memory::Whole, 4);
  CHECK(bound_of(schedule).makespan > free);
}

TEST_CASE("uneven microbatches: each with its own length, and in no order of their own") {
  Schedule schedule = test::training(2, 1, 3);
  IndexedValues values;
  values.stride[1] = 1;
  values.values = {1, 2, 5};
  schedule.costs.duration[KindId(0)] = values;
  // Device 1 waits for the shortest forward; its work is 8 + 3 * 2; after it device 0 has a backward left.
  CHECK(bound_of(schedule, false).makespan == 1 + 8 + 6 + 2);
}

TEST_CASE("Jackson's preemptive schedule") {
  CHECK(bounds::jackson({}) == 0);
  // Carlier's example: heads 10 13 11 20 30 0 30, lengths 5 6 7 4 3 6 2, tails 7 26 24 21 8 17 0.
  CHECK(bounds::jackson({{10, 5, 7}, {13, 6, 26}, {11, 7, 24}, {20, 4, 21}, {30, 3, 8}, {0, 6, 17}, {30, 2, 0}}) == 49);
}

TEST_CASE("the busy times of a machine do not depend on the order in which jobs are added") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<Ticks, Ticks>> jobs;
    for (int i = 0; i < 12; ++i)
      jobs.push_back({static_cast<Ticks>(random() % 40), static_cast<Ticks>(random() % 5)});
    bounds::Busy busy;
    for (const auto& [head, length] : jobs) busy.add(head, length);
    std::sort(jobs.begin(), jobs.end());
    Ticks end = 0;
    for (const auto& [head, length] : jobs) end = std::max(end, head) + length;
    CHECK(busy.end() == end);
  }
}

}  // namespace stave
