// Messages of a model whose microbatches or slices differ in length: what each takes, and that all who price a table
// agree.
#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "scheduler/bounds.h"
#include "scheduler/contention/machine.h"
#include "scheduler/model_prices.h"
#include "scheduler/order/order.h"
#include "scheduler/pricer/straight_line.h"
#include "scheduler/simulate.h"
#include "scheduler/toml.h"
#include "tests/property/lowered.h"
#include "tests/unit/support/costs.h"

namespace stave {
namespace {

/// A token is 1000 numbers of two bytes, so 2 us over the link within a node and 4 us over that between two.
struct Machine {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Cluster> cluster;
};

Machine slow_links() {
  Sources sources;
  Diagnostics sink;
  const std::optional<Model> model = read_model(
      sources,
      sources.add("model", "hidden = 1000\nsequence = 100\n[[layer]]\nkind = 'transformer'\ncount = 4\nheads = 8\n"
                           "head_size = 125\nffn = 4000\n"),
      sink);
  const std::optional<Cluster> cluster = read_cluster(
      sources,
      sources.add("cluster", "[device.d]\npeak = { bf16 = '1 TFLOP/s' }\nmemory = '80 GB'\n"
                             "memory_bandwidth = '1 TB/s'\n[link.in]\nlatency = '5 us'\nbandwidth = '1 GB/s'\n"
                             "[link.net]\nlatency = '10 us'\nbandwidth = '500 MB/s'\n"
                             "[[node]]\ndevice = 'd'\ncount = 2\ncopies = 2\ninside = 'in'\nnetwork = 'net'\n"),
      sink);
  if (!model || !cluster) FAIL(render_lines(sources, sink));
  return {std::make_shared<const Model>(*model), std::make_shared<const Cluster>(*cluster)};
}

Schedule priced(const std::string& text, const ModelPrices& prices, const std::string& changed = "") {
  Sources sources;
  Diagnostics sink;
  std::optional<Compiled> compiled = compile(sources, sources.add("test.sched", text), sink);
  if (compiled && !changed.empty()) compiled = override_costs(*compiled, sources, sources.add("--cost", changed), sink);
  if (!compiled) FAIL(render_lines(sources, sink));
  Expanded expanded = expand(*compiled, {}, sink, &prices);
  if (!expanded.schedule) FAIL(render_lines(sources, sink));
  return std::move(*expanded.schedule);
}

std::string four(const std::string& sizes, const std::string& order) {
  return "schedule four\ndevices 4\nstages 4\n" + sizes + "\nplace stage s on device s\n" + order;
}
const std::string kGpipe = "on device d { repeat 3 { F(d, next) } repeat 3 { B(d, next) } }\n";

/// Everyone who prices a table finds the same, and no bound is above it.
void check_agree(const Schedule& schedule, const ModelPrices& prices) {
  const Table table = test::table_of(schedule);
  const Program program = test::program_of(schedule, table);
  const Costs costs = test::costs_of(schedule);
  const Starts starts = start_times(schedule, table, costs);
  const Price price = StraightLine(schedule, table, costs).price(costs);
  CHECK(price.makespan == *std::max_element(starts.end.begin(), starts.end.end()));
  const Timeline times = simulate(program, costs);
  const Timeline shared = simulate_by({}, &prices, program, costs);
  CHECK(shared.start == times.start);
  CHECK(shared.end == times.end);
  const auto last = std::max_element(times.end.begin(), times.end.begin() + table.size());
  // Without a slot to wait for, messages leave at once.
  CHECK(*last >= price.makespan);
  CHECK(lower_bound(schedule, table, costs).makespan <= price.makespan);
}

TEST_CASE("a message takes the time of its own microbatch, by hand") {
  const auto [model, cluster] = slow_links();
  const ModelPrices prices(model, cluster, {});
  const Schedule schedule = priced(four("microbatches [100, 200, 400]", kGpipe), prices);
  const Program program = test::program_of(schedule, test::table_of(schedule));
  const Costs costs = test::costs_of(schedule);
  const Contention contention = contention_of(prices, program, costs);
  const Ticks lengths[] = {100, 200, 400};
  REQUIRE(program.messages.size() == 18);
  for (std::size_t i = 0; i < program.messages.size(); ++i) {
    const Message& each = program.messages[i];
    const Edge& edge = program.edges[each.edge.value];
    const Ticks tokens = lengths[program.table.ops.microbatch(program.table.entries[each.producer])];
    const bool between_nodes = edge.source.value / 2 != edge.target.value / 2;
    const Ticks us = between_nodes ? 10 + 4 * tokens : 5 + 2 * tokens;
    CHECK(costs.of_message(program, each) == us * costs.ticks_per_unit);
    CHECK(contention.bytes[i] == static_cast<std::uint64_t>(2000 * tokens));
  }
}

TEST_CASE("a step of two devices whose messages differ, by hand") {
  // A token takes 1 us of F and 2 us of B on each stage, and 2 us on the link, after 5 us. F of device 0 ends at 100, 300
  // and 700; its messages come at 305, 705 and 1505, so that B begins at 1905 on device 1 and ends at 2105, 2505 and 3305;
  // gradients come at 2310, 2910 and 4110, and the last B takes 800.
  const Machine machine = slow_links();
  Sources sources;
  Diagnostics sink;
  const std::optional<Model> timed = read_model(
      sources,
      sources.add("model", "hidden = 1000\nsequence = 100\n[[layer]]\nkind = 'timed'\ncount = 2\nF = '100 us'\n"
                           "I = '100 us'\nW = '100 us'\n"),
      sink);
  REQUIRE(timed);
  const ModelPrices prices(std::make_shared<const Model>(*timed), machine.cluster, {});
  const Schedule schedule = priced("schedule two\ndevices 2\nstages 2\nmicrobatches [100, 200, 400]\n"
                                   "place stage s on device s\n" + kGpipe,
                                   prices);
  const Costs costs = test::costs_of(schedule);
  const Price price = StraightLine(schedule, test::table_of(schedule), costs).price(costs);
  CHECK(price.makespan == 4910 * costs.ticks_per_unit);
  check_agree(schedule, prices);
}

TEST_CASE("messages of slices that differ go by the slice, and those that are alike have one cost") {
  const auto [model, cluster] = slow_links();
  const ModelPrices prices(model, cluster, {});
  const std::string order = "on device d { for m in microbatches { for q in slices(m) { F(d, m, q) } }\n"
                            "for m in microbatches { for q in reversed(slices(m)) { B(d, m, q) } } }\n";
  const Schedule sliced = priced(four("microbatches [80, 40]\nslices [[50, 30], [40]]", order), prices);
  REQUIRE(sliced.costs.message.sizes() != nullptr);
  const OpSet& ops = sliced.ops;
  const auto of = [&](std::uint32_t m, std::uint32_t q) {
    const std::uint32_t index[] = {0, m, q};
    const OpId op = ops.id(ops.find("F"), index);
    return sliced.costs.message.from(ops, op, 1, 0, 1);
  };
  CHECK(of(0, 0) == Rational(105));
  CHECK(of(0, 1) == Rational(65));
  CHECK(of(1, 0) == Rational(85));
  check_agree(sliced, prices);
  const Schedule alike = priced(four("microbatches [100, 100, 100]", kGpipe), prices);
  CHECK(alike.costs.message.sizes() == nullptr);
  CHECK(alike.costs.message.of(1, 0, 1, 0) == Rational(205));
}

TEST_CASE("a factor of messages that differ is one of each") {
  const auto [model, cluster] = slow_links();
  const ModelPrices prices(model, cluster, {});
  const Schedule schedule =
      priced(four("microbatches [100, 200, 400]", kGpipe), prices, "activation(a, b) = activation(a, b) * 2");
  const auto of = [&](std::size_t payload, std::uint32_t m) {
    const std::uint32_t index[] = {0, m, 0};
    const KindId forward = schedule.ops.find("F");
    const OpId op = schedule.ops.id(forward, std::span(index, schedule.ops.kinds()[forward].indices.size()));
    return schedule.costs.message.from(schedule.ops, op, payload, 0, 1);
  };
  CHECK(of(1, 0) == Rational(410));
  CHECK(of(1, 2) == Rational(1610));
  CHECK(of(2, 0) == Rational(205));
}

TEST_CASE("with messages that differ all prices of a table agree, whatever orders it") {
  const auto [model, cluster] = slow_links();
  const ModelPrices prices(model, cluster, {});
  std::mt19937 random(7);
  const auto length = [&] { return std::to_string(std::uniform_int_distribution<int>(1, 400)(random)); };
  for (int round = 0; round < 20; ++round) {
    const std::string sizes = "microbatches [" + length() + ", " + length() + ", " + length() + "]";
    CAPTURE(sizes);
    check_agree(priced(four(sizes, kGpipe), prices), prices);
    const std::string any = "on device d { any { I(*, *) } any { F(*, *) } fill { W(*, *) } }\n";
    check_agree(priced(four(sizes, any), prices), prices);
  }
}

}  // namespace
}  // namespace stave
