// What each step of the compiler takes on a large schedule, in one process: seconds, nanoseconds an op, and bytes an op
// that the step's value holds. The op is an entry of the table. These machines are noisy, so each is also given as a ratio
// to a limit measured in the same run: one pass over the table that reads eight bytes of every entry in time order, all
// devices in turn, which no step that follows the needs can do without.
// Usage: bench_steps FILE [NAME=VALUE ...]; see bench/README.md.

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/lower.h"
#include "compiler/render.h"
#include "compiler/verify.h"
#include "scheduler/contention/simulate_shared.h"
#include "scheduler/costs.h"
#include "scheduler/order/order.h"
#include "scheduler/pricer/straight_line.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"

namespace stave {
namespace {

std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Processor time: the other jobs of a machine count for less in it. All steps have one thread.
double seconds_now() {
  struct timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Measures one step after the other; the figures are printed at the end, when the number of ops is known.
class Steps {
 public:
  template <class Step>
  auto measure(std::string name, Step&& step) {
    const std::size_t bytes = heap_bytes();
    const double begin = seconds_now();
    auto result = step();
    const double seconds = seconds_now() - begin;
    const std::size_t after = heap_bytes();
    rows_.push_back({std::move(name), seconds, after > bytes ? after - bytes : 0});
    return result;
  }

  /// What is measured from here to `end_sum` is added up in a row of its own.
  void begin_sum() { sum_from_ = rows_.size(); }
  void end_sum(std::string name) {
    Row sum{std::move(name), 0, 0};
    for (std::size_t i = sum_from_; i < rows_.size(); ++i) {
      sum.seconds += rows_[i].seconds;
      sum.bytes += rows_[i].bytes;
    }
    sums_.push_back(std::move(sum));
  }

  /// `limit`: seconds of the pass that all are held against.
  void print(std::uint32_t ops, double limit) const {
    struct rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    const auto row = [&](const std::string& name, double seconds) {
      fmt::print("{:<22}{:>9.3f}{:>9.1f}{:>9.1f}", name, seconds, seconds * 1e9 / ops, seconds / limit);
    };
    const auto row_with_bytes = [&](const Row& each) {
      row(each.name, each.seconds);
      fmt::print("{:>12.1f}\n", static_cast<double>(each.bytes) / ops);
    };
    double total = 0;
    fmt::print("{:<22}{:>9}{:>9}{:>9}{:>12}\n", "step", "seconds", "ns/op", "ratio", "bytes/op");
    for (const Row& each : rows_) {
      total += each.seconds;
      row_with_bytes(each);
    }
    for (const Row& each : sums_) row_with_bytes(each);
    row("total", total);
    fmt::print("\n");
    row("limit: one pass", limit);
    fmt::print("\npeak memory {:.0f} MB, {} ops\n", static_cast<double>(usage.ru_maxrss) / 1024, ops);
  }

 private:
  struct Row {
    std::string name;
    double seconds = 0;
    std::size_t bytes = 0;
  };
  std::vector<Row> rows_;
  std::vector<Row> sums_;
  std::size_t sum_from_ = 0;
};

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "bench_steps: {}\n", why);
  std::exit(2);
}

/// Seconds to read the start of every entry, device by device in turn. Adds up what it reads, so that it is read.
double one_pass(const Table& table, const Starts& starts, Ticks& sum) {
  const double begin = seconds_now();
  std::uint32_t longest = 0;
  for (std::uint32_t d = 0; d < table.devices(); ++d) longest = std::max(longest, table.first[d + 1] - table.first[d]);
  for (std::uint32_t i = 0; i < longest; ++i)
    for (std::uint32_t d = 0; d < table.devices(); ++d)
      if (table.first[d] + i < table.first[d + 1]) sum += starts.start[table.first[d] + i];
  return seconds_now() - begin;
}

/// As of nodes of eight devices with one network link each way: every message takes that of its source's node out and that
/// of its target's node in.
Contention links_of_nodes(const Program& program) {
  constexpr std::uint32_t kDevicesOfNode = 8;
  const std::uint32_t nodes = (program.table.devices() + kDevicesOfNode - 1) / kDevicesOfNode;
  Contention result;
  result.links = 2 * nodes;
  for (const Edge& edge : program.edges) {
    result.links_of_edge.items.push_back(edge.source.value / kDevicesOfNode);
    result.links_of_edge.items.push_back(nodes + edge.target.value / kDevicesOfNode);
    result.links_of_edge.end_row();
  }
  return result;
}

/// Ops sixteen times their costs, and messages of one tick, so that links are wanted by several and are not all the time.
std::vector<Ticks> contended_lengths(const Program& program, const Costs& costs) {
  std::vector<Ticks> result = lengths_of(program, costs);
  for (std::uint32_t n = 0; n < program.nodes(); ++n)
    result[n] = program.is_message(NodeId(n)) ? 1 : 16 * result[n];
  return result;
}

void check(bool ok, const Sources& sources, const Diagnostics& sink) {
  if (!ok) fail(render_lines(sources, sink));
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) fail("usage: bench_steps FILE [NAME=VALUE ...]");
  Steps steps;
  Sources sources;
  Diagnostics sink;
  std::vector<Argument> arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    Result<Argument> argument = read_argument(words[i]);
    if (!argument) fail(argument.failure().message);
    arguments.push_back(*argument);
  }
  const std::optional<Compiled> compiled = steps.measure("parse, check", [&]() -> std::optional<Compiled> {
    Result<SourceId> source = read_source(sources, words[0]);
    if (!source) fail(source.failure().message);
    return compile(sources, *source, sink);
  });
  check(compiled.has_value(), sources, sink);
  Expanded expanded = steps.measure("expand", [&] { return expand(*compiled, arguments, sink); });
  check(expanded.schedule.has_value(), sources, sink);
  const Schedule& schedule = *expanded.schedule;
  const std::optional<Costs> costs = make_costs(schedule, sink);
  check(costs.has_value(), sources, sink);
  const std::optional<Table> table = steps.measure("order", [&] { return stave::order(schedule, *costs, sink); });
  check(table.has_value(), sources, sink);
  steps.begin_sum();
  check(steps.measure("verify ops", [&] { return verify_complete(schedule, *table, sink); }), sources, sink);
  const TableNeeds needs = steps.measure("needs", [&] { return TableNeeds(schedule, *table); });
  const std::optional<RunOrder> order =
      steps.measure("verify order", [&] { return verify_order(schedule, *table, needs, sink); });
  check(order.has_value(), sources, sink);
  const StraightLine line = steps.measure("compile prices", [&] { return StraightLine(*table, needs, *order, *costs); });
  steps.end_sum("from a table to prices");
  const Starts starts = steps.measure("start times", [&] { return start_times(*table, needs, *order, *costs); });
  const Program program = steps.measure("lower", [&] { return lower(schedule, *table, needs, starts); });
  check(steps.measure("verify program", [&] { return verify(program, schedule, sink); }), sources, sink);
  steps.end_sum("and to a Program");
  const Timeline timeline = steps.measure("simulate", [&] { return simulate(program, *costs); });
  const std::vector<Ticks> lengths = contended_lengths(program, *costs);
  const Contention contention = links_of_nodes(program);
  SimulationRules first_come;
  first_come.links = Sharing::FirstCome;
  const Timeline shared =
      steps.measure("simulate, links", [&] { return simulate_shared(program, lengths, *costs, first_come, contention); });
  const Price price = steps.measure("price", [&] { return line.price(*costs); });
  const std::vector<Costs> sixteen(16, *costs);
  const std::vector<Price> prices = steps.measure("price 16 sets", [&] { return line.price(sixteen); });
  if (prices.back() != price) fail("sixteen prices at once differ from one");
  Ticks makespan = 0, sum = 0;
  for (std::uint32_t position = 0; position < table->size(); ++position)
    makespan = std::max(makespan, timeline.end[position]);
  if (price.makespan != makespan) fail("the price of the table differs from that of its program");
  steps.print(table->size(), one_pass(*table, starts, sum));
  std::uint32_t waited = 0;
  for (std::uint32_t n = table->size(); n < program.nodes(); ++n) {
    Ticks ready = 0;
    for (NodeId before : program.waits[n]) ready = std::max(ready, shared.end[before.value]);
    waited += shared.start[n] > ready;
  }
  fmt::print("of {} messages {} waited for a link or their edge\n", program.messages.size(), waited);
  fmt::print("makespan {} ticks, mean start {:.1f}\n", makespan, static_cast<double>(sum) / table->size());
  return 0;
}

}  // namespace
}  // namespace stave

int main(int argc, char** argv) { return stave::run(std::vector<std::string>(argv + 1, argv + argc)); }
