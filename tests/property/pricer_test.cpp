// The straight line of a table: the same makespan and span as its start times, under costs that it was not made with,
// one set at a time and sixteen at once; with streams, pairs, reductions, setups and slow links.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/lanes.h"
#include "scheduler/pricer/straight_line.h"
#include "tests/property/lowered.h"
#include "tests/unit/support/training.h"

namespace stave {
namespace {

namespace fs = std::filesystem;

/// Makespan and longest span, from the times of every entry.
Price by_times(const Table& table, const Starts& times) {
  Price price;
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    Ticks first = kMaxTicks;
    Ticks last = 0;
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      if (table.ops.kind(table.entries[position]).optional) continue;
      first = std::min(first, times.start[position]);
      last = std::max(last, times.end[position]);
    }
    price.makespan = std::max(price.makespan, last);
    if (first <= last) price.span = std::max(price.span, last - first);
  }
  return price;
}

/// The same shape with other numbers.
Costs at_random(Costs costs, std::mt19937& random) {
  const auto value = [&] { return Ticks(std::uniform_int_distribution<int>(0, 9)(random)); };
  for (KindTicks& kind : costs.kinds)
    for (Ticks& each : kind.values) each = value();
  for (auto& [first, ticks] : costs.pairs) ticks = value();
  for (auto& rule : costs.setups.rules)
    for (Ticks& each : rule.values) each = value();
  costs.message = costs.message.map<Ticks>([&](Ticks) { return value(); });
  return costs;
}

void check_prices(const std::string& text, const std::vector<Argument>& arguments, std::mt19937& random) {
  const Schedule schedule = test::schedule_of(text, arguments);
  const Table table = test::table_of(schedule);
  Diagnostics sink;
  const std::optional<Costs> costs = make_costs(schedule, sink);
  REQUIRE(costs);
  Costs first = *costs;
  // Messages of several sizes, where they have an end at a microbatch.
  if (random() % 2 == 0)
    first.message = test::sized_message_costs<Ticks>(schedule, [&] { return static_cast<std::uint32_t>(random() % 10); });
  const StraightLine line(schedule, table, first);
  std::vector<Costs> sets = {first};
  while (sets.size() < 19) sets.push_back(at_random(first, random));
  // One beyond what a double holds exactly.
  for (KindTicks& kind : sets.back().kinds)
    for (Ticks& each : kind.values) each = each * (Ticks(1) << 46) + 1;
  const std::vector<Price> all = line.price(sets);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Price wanted = by_times(table, start_times(schedule, table, sets[i]));
    CHECK(line.price(sets[i]) == wanted);
    CHECK(all[i] == wanted);
  }
}

TEST_CASE("every schedule of the library has one price, however it is found") {
  std::mt19937 random(4);
  for (const char* folder : {"schedules", "tests/golden"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(STAVE_SOURCE_DIR) / folder)) {
      const std::string name = entry.path().filename().string();
      const bool golden = std::string(folder) == "tests/golden";
      const bool chosen = name == "overlap.sched" || name == "reduced.sched" || name == "streams.sched" ||
                          name == "setup.sched" || name == "versions.sched" || name == "slow_link.sched" ||
                          name == "optional_fill.sched";
      if (entry.path().extension() != ".sched" || (golden && !chosen)) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      INFO(name);
      check_prices(text.str(), {}, random);
    }
  }
}

}  // namespace
}  // namespace stave
