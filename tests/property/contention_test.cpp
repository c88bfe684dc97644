// The simulation with contention: without any it is the plain one; with it, a second one that goes tick by tick and knows
// neither events nor queues of them agrees to the tick.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/lanes.h"
#include "scheduler/analysis.h"
#include "scheduler/contention/ahead.h"
#include "scheduler/contention/sharing.h"
#include "scheduler/contention/simulate_shared.h"
#include "scheduler/contention/trials.h"
#include "scheduler/contention/turns.h"
#include "scheduler/critical_path.h"
#include "scheduler/simulate.h"
#include "tests/property/library.h"
#include "tests/property/random_contention.h"
#include "tests/property/random_tables.h"

namespace stave {
namespace {

/// Goes tick by tick. At each: what has ended ends, in order of numbers; then what may begin begins, the lowest number first,
/// and after each beginning again what ends at once.
class TickByTick {
 public:
  TickByTick(const Program& program, const std::vector<Ticks>& lengths, const SimulationRules& rules,
             const Contention& contention)
      : p_(program),
        rules_(rules),
        contention_(contention),
        lanes_(program.table),
        nodes_(program.nodes()),
        room_(program.edges.size(), rules.buffered_bytes.value_or(0)) {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      Node& node = nodes_[n];
      const std::uint32_t edge = p_.is_message(NodeId(n)) ? p_.message(NodeId(n)).edge.value : 0;
      node.is_message = p_.is_message(NodeId(n));
      node.latency = node.is_message && !contention.latency.empty() ? std::min(lengths[n], contention.latency[edge]) : 0;
      // 720720 parts of a tick's work for messages, as many as the slow-down for ops.
      const Ticks parts = node.is_message ? 720720 : slowdown(device(n));
      node.moves = lengths[n] - node.latency;
      node.left = node.moves * parts;
    }
    times_.start.assign(nodes_.size(), 0);
    times_.end.assign(nodes_.size(), 0);
    times_.asked.assign(p_.messages.size(), 0);
    times_.longer.assign(p_.messages.size(), 0);
    times_.came.assign(p_.messages.size(), 0);
  }

  Timeline run() {
    for (now_ = 0; !all_done(); ++now_) {
      REQUIRE(now_ < 100000);
      while (end_one() || begin_one()) {
      }
      move();
    }
    return times_;
  }

 private:
  // A message has come where it waits for its slot; without buffers it has one before it leaves.
  enum State { Waiting, Queued, Going, Coming, Come, Done };
  struct Node {
    bool is_message = false;
    bool is_buffered = false;
    State state = Waiting;
    Ticks left = 0;
    Ticks latency = 0;
    Ticks comes_at = 0;
    Ticks moves = 0;
    std::uint32_t turn = 0;
  };

  std::uint32_t device(std::uint32_t op) const { return lanes_.device_at(op); }
  Ticks slowdown(std::uint32_t d) const { return contention_.slowdown.empty() ? 1000 : contention_.slowdown[d]; }
  bool all_done() const {
    return std::ranges::all_of(nodes_, [](const Node& node) { return node.state == Done; });
  }
  std::vector<std::uint32_t> links(std::uint32_t message) const {
    if (!contention_.shares_links() || rules_.links == Sharing::Own) return {};
    const auto row = contention_.links_of_edge[p_.message(NodeId(message)).edge.value];
    return {row.begin(), row.end()};
  }
  bool meet(std::uint32_t a, std::uint32_t b) const {
    const auto theirs = links(b);
    return std::ranges::any_of(links(a), [&](std::uint32_t l) { return std::ranges::count(theirs, l) != 0; });
  }

  const Edge& edge(std::uint32_t message) const { return p_.edges[p_.message(NodeId(message)).edge.value]; }
  std::uint64_t bytes(std::uint32_t message) const {
    return contention_.bytes[p_.message_of(NodeId(message)).value];
  }

  // What waits for the sender's slot of a message goes on when it has come: what runs there, or arrives there. A message
  // back may carry what has come on, so it waits for the slot.
  bool lets_go(std::uint32_t before, std::uint32_t n) const {
    const State state = nodes_[before].state;
    if (state != Come) return state == Done;
    if (!nodes_[n].is_message) return device(n) == edge(before).source.value;
    return edge(n).target == edge(before).source && edge(n).source != edge(before).target;
  }

  // Of what a message waits for, what was in its slot at the receiver: an op there, or a message from there.
  bool has_slot(std::uint32_t n) const {
    return std::ranges::all_of(p_.waits[n], [&](NodeId before) { return !is_there(before.value, n) || lets_go(before.value, n); });
  }
  bool is_there(std::uint32_t before, std::uint32_t n) const {
    if (!rules_.buffered_bytes || !nodes_[n].is_message) return false;
    return edge(n).target.value == (nodes_[before].is_message ? edge(before).source.value : device(before));
  }

  bool may_begin(std::uint32_t n) const {
    for (NodeId before : p_.waits[n])
      if (!is_there(before.value, n) && !lets_go(before.value, n)) return false;
    if (rules_.buffered_bytes && nodes_[n].is_message && !has_slot(n) &&
        bytes(n) > room_[p_.message(NodeId(n)).edge.value])
      return false;
    if (!nodes_[n].is_message) {
      const std::uint32_t before = lanes_.previous(n);
      if (before != Lanes::kNone && nodes_[before].state != Done) return false;
    } else if (!rules_.blocking) {
      for (std::uint32_t m = p_.table.size(); m < n; ++m) {
        if (p_.message(NodeId(m)).edge != p_.message(NodeId(n)).edge) continue;
        const State state = nodes_[m].state;
        if (rules_.rendezvous ? state != Done : state == Waiting || state == Queued) return false;
      }
    }
    if (!rules_.blocking) return true;
    for (std::uint32_t d = 0; d < p_.table.devices(); ++d) {
      const auto queue = p_.issue[d];
      for (NodeId each : queue) {
        if (each.value == n) break;
        if (std::ranges::count(queue, NodeId(n)) != 0 && nodes_[each.value].state != Done) return false;
      }
    }
    return true;
  }

  bool begin_one() {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].state != Waiting || !may_begin(n)) continue;
      nodes_[n].turn = ++turns_;
      nodes_[n].state = Queued;
      if (rules_.buffered_bytes && nodes_[n].is_message && !has_slot(n)) {
        nodes_[n].is_buffered = true;
        room_[p_.message(NodeId(n)).edge.value] -= bytes(n);
      }
      if (nodes_[n].is_message) times_.asked[p_.message_of(NodeId(n)).value] = now_;
      begin_first();
      return true;
    }
    return false;
  }

  // Of those queued, what may go.
  void begin_first() {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].state != Queued) continue;
      bool free = true;
      for (std::uint32_t m = 0; m < nodes_.size() && nodes_[n].is_message && !is_fair(); ++m)
        if (m != n && nodes_[m].is_message && meet(n, m) &&
            (nodes_[m].state == Going || (nodes_[m].state == Queued && nodes_[m].turn < nodes_[n].turn)))
          free = false;
      if (!free) continue;
      nodes_[n].state = Going;
      times_.start[n] = now_;
    }
  }

  bool is_fair() const { return rules_.links == Sharing::Fair; }

  bool end_one() {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      Node& node = nodes_[n];
      if (node.state == Going && node.left <= 0) {
        node.state = Coming;
        node.comes_at = now_ + node.latency;
        if (node.is_message)
          times_.longer[p_.message_of(NodeId(n)).value] = now_ - times_.start[n] - node.moves;
        begin_first();
        return true;
      }
      if (node.state == Coming && node.comes_at <= now_) {
        node.state = Come;
        if (node.is_message) times_.came[p_.message_of(NodeId(n)).value] = now_;
      }
      if (node.state == Come && has_slot(n)) {
        node.state = Done;
        times_.end[n] = now_;
        if (node.is_buffered) room_[p_.message(NodeId(n)).edge.value] += bytes(n);
        return true;
      }
    }
    return false;
  }

  void move() {
    std::vector<bool> slowed(p_.table.devices(), false);
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (!nodes_[n].is_message || nodes_[n].state != Going) continue;
      const Edge& edge = p_.edges[p_.message(NodeId(n)).edge.value];
      slowed[edge.source.value] = slowed[edge.target.value] = true;
    }
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      Node& node = nodes_[n];
      if (node.state != Going) continue;
      if (!node.is_message) {
        node.left -= slowed[device(n)] ? 1000 : slowdown(device(n));
        continue;
      }
      Ticks most = 1;
      for (std::uint32_t link : links(n)) {
        Ticks on_it = 0;
        for (std::uint32_t m = 0; m < nodes_.size(); ++m) {
          if (!nodes_[m].is_message || nodes_[m].state != Going) continue;
          const auto theirs = links(m);
          on_it += std::ranges::count(theirs, link);
        }
        most = std::max(most, on_it);
      }
      node.left -= 720720 / (is_fair() ? most : 1);
    }
  }

  const Program& p_;
  const SimulationRules& rules_;
  const Contention& contention_;
  const Lanes lanes_;
  std::vector<Node> nodes_;
  // By edge: bytes that its buffer would still take.
  std::vector<std::uint64_t> room_;
  Ticks now_ = 0;
  std::uint32_t turns_ = 0;
  Timeline times_;
};

void check_sums(const Report& report, const Program& program, const Timeline& times, const Costs& costs,
                const Turns& turns) {
  for (const DeviceReport& device : report.devices)
    CHECK(std::accumulate(device.idle.begin(), device.idle.end(), Ticks{0}) == report.makespan - device.busy);
  const CriticalPath path = critical_path(program, times, costs, turns);
  CHECK(path.waiting >= 0);
  Ticks sum = path.waiting;
  for (const KindBlame& each : path.kinds) {
    CHECK(each.time >= 0);
    sum += each.time;
  }
  CHECK(sum == report.makespan);
}

TEST_CASE("with contention, times are those of a simulation tick by tick, and idle causes sum to idle") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  test::RandomTables random(seed);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const Schedule schedule = random.schedule();
    const Program program = test::program_of(schedule, random.legal(schedule));
    const Contention contention = test::random_contention(random, program);
    SimulationRules rules;
    rules.links = std::vector{Sharing::Own, Sharing::FirstCome, Sharing::Fair}[random.upto(0, 2)];
    rules.blocking = random.upto(0, 3) == 0;
    rules.rendezvous = !rules.blocking && random.upto(0, 2) == 0;
    std::vector<Ticks> lengths(program.nodes());
    for (Ticks& each : lengths) each = random.upto(0, 6);
    const Timeline times = simulate_shared(program, lengths, test::costs_of(schedule), rules, contention);
    const Timeline naive = TickByTick(program, lengths, rules, contention).run();
    CHECK(times.start == naive.start);
    CHECK(times.end == naive.end);
    if (!times.asked.empty()) CHECK(times.asked == naive.asked);
    if (!times.longer.empty()) CHECK(times.longer == naive.longer);
    const bool shares = contention.shares_links() && rules.links != Sharing::Own;
    CHECK(times.asked.empty() == !(shares && rules.links == Sharing::FirstCome && !program.messages.empty()));
    CHECK(times.longer.empty() == !(shares && rules.links == Sharing::Fair && !program.messages.empty()));
    const Report report = analyse(schedule, program, times);
    check_sums(report, program, times, test::costs_of(schedule), Turns(program, times, rules, contention));
  }
}

TEST_CASE("with buffers as well, idle causes sum to idle, and the critical path with its waiting to the makespan") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  test::RandomTables random(seed);
  std::uint32_t waited = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const Schedule schedule = random.schedule();
    const Program program = test::program_of(schedule, random.legal(schedule));
    Contention contention = test::random_contention(random, program);
    for (std::size_t i = 0; i < program.messages.size(); ++i)
      contention.bytes.push_back(random.upto(50, 150));
    SimulationRules rules;
    rules.links = std::vector{Sharing::Own, Sharing::FirstCome, Sharing::Fair}[random.upto(0, 2)];
    rules.buffered_bytes = 100 * random.upto(0, 3);
    std::vector<Ticks> lengths(program.nodes());
    for (Ticks& each : lengths) each = random.upto(0, 6);
    const Timeline times = simulate_shared(program, lengths, test::costs_of(schedule), rules, contention);
    const Timeline naive = TickByTick(program, lengths, rules, contention).run();
    CHECK(times.start == naive.start);
    CHECK(times.end == naive.end);
    CHECK(times.came == naive.came);
    REQUIRE(times.came.size() == program.messages.size());
    for (std::uint32_t m = 0; m < program.messages.size(); ++m) {
      const std::uint32_t node = program.node(MessageId(m)).value;
      CHECK(times.start[node] <= times.came[m]);
      CHECK(times.came[m] <= times.end[node]);
      waited += times.came[m] < times.end[node];
    }
    check_sums(analyse(schedule, program, times), program, times, test::costs_of(schedule),
               Turns(program, times, rules, contention));
  }
  CHECK(waited > 0);
}

TEST_CASE("ahead of time or event by event, every schedule of the library takes the same times") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  test::RandomTables random(seed);
  std::uint32_t waited = 0;
  for (const std::filesystem::path& file : test::library()) {
    CAPTURE(file);
    const Schedule schedule = test::schedule_of(test::read(file));
    const Program program = test::program_of(schedule, test::table_of(schedule));
    const Costs costs = test::costs_of(schedule);
    Contention contention = test::random_contention(random, program);
    contention.slowdown.clear();
    std::vector<Ticks> lengths = lengths_of(program, costs);
    for (Ticks& each : lengths) each += random.upto(0, 3);
    for (const Sharing sharing : {Sharing::FirstCome, Sharing::Own}) {
      SimulationRules rules;
      rules.rendezvous = random.upto(0, 1) == 1;
      REQUIRE(is_known_ahead(sharing, rules, contention));
      const Timeline ahead = simulate_ahead(program, lengths, costs, sharing, rules, contention);
      const SharingRule& rule = kSharings[static_cast<std::size_t>(sharing)];
      const Timeline events = rule.simulate(program, lengths, costs, rules, contention);
      CHECK(ahead.start == events.start);
      CHECK(ahead.end == events.end);
      CHECK(ahead.asked == events.asked);
      for (std::size_t m = 0; m < ahead.asked.size(); ++m) waited += ahead.asked[m] < ahead.start[program.table.size() + m];
    }
  }
  CHECK(waited > 0);
}

TEST_CASE("links that are freed at once start each message once") {
  const Schedule schedule = test::schedule_of(
      "schedule line\ndevices 4\nstages 4\nmicrobatches 4\nplace stage s on device s\n"
      "on device d { F(d, 0) F(d, 1) F(d, 2) F(d, 3) B(d, 0) B(d, 1) B(d, 2) B(d, 3) }\n"
      "cost F = 1, B = 1, message = 4\n");
  const Program program = test::program_of(schedule, test::table_of(schedule));
  const Costs costs = test::costs_of(schedule);
  // From device 0 over three links, from 1 over the outer two, from 2 over the one between, from 3 and back over none.
  const std::vector<std::vector<std::uint32_t>> links = {{0, 1, 2}, {0, 2}, {1}};
  Contention contention;
  contention.links = 3;
  for (const Edge& edge : program.edges) {
    if (edge.source.value < edge.target.value)
      for (std::uint32_t link : links[edge.source.value]) contention.links_of_edge.items.push_back(link);
    contention.links_of_edge.end_row();
  }
  const std::vector<Ticks> lengths = lengths_of(program, costs);
  const Timeline events = kSharings[0].simulate(program, lengths, costs, {}, contention);
  const Timeline ahead = simulate_ahead(program, lengths, costs, Sharing::FirstCome, {}, contention);
  CHECK(events.start == ahead.start);
  CHECK(events.end == ahead.end);
  // The last of device 0 moves from 17 to 21; the second of 1 and the first of 2 wait for it.
  std::uint32_t at_once = 0;
  for (std::uint32_t n = program.table.size(); n < program.nodes(); ++n)
    at_once += events.start[n] == 21 * costs.ticks_per_unit;
  CHECK(at_once == 2);
}

TEST_CASE("without rules and contention it is the plain simulation, for every schedule of the library") {
  for (const std::filesystem::path& file : test::library()) {
    CAPTURE(file);
    const Schedule schedule = test::schedule_of(test::read(file));
    const Program program = test::program_of(schedule, test::table_of(schedule));
    Costs costs = test::costs_of(schedule);
    const Timeline plain = simulate(program, costs);
    const Timeline shared = simulate_shared(program, lengths_of(program, costs), costs, {}, {});
    CHECK(shared.start == plain.start);
    CHECK(shared.end == plain.end);
    // A buffer delays nothing.
    SimulationRules buffered;
    buffered.buffered_bytes = 1;
    const Timeline early = simulate_shared(program, lengths_of(program, costs), costs, buffered, {});
    for (std::uint32_t n = 0; n < program.table.size(); ++n) CHECK(early.end[n] <= plain.end[n]);
  }
}

/// 1F1B on two devices, each forward 1 and backward 2.
Program one_f_one_b(Schedule& schedule) {
  schedule = test::schedule_of(
      "schedule two\ndevices 2\nstages 2\nmicrobatches 4\nplace stage s on device s\n"
      "on device d { repeat 1 - d { F(d, next) } repeat 3 + d { F(d, next) B(d, next) } repeat 1 - d { B(d, next) } }\n"
      "cost F = 1, B = 2, message = 0\n");
  return test::program_of(schedule, test::table_of(schedule));
}

TEST_CASE("a buffer lets a message leave before its slot is free, as far as it has room") {
  Schedule schedule;
  const Program program = one_f_one_b(schedule);
  const Costs costs = test::costs_of(schedule);
  std::vector<Ticks> lengths = lengths_of(program, costs);
  // A slow receiver: its slots stay in use, and the sender waits for its own.
  for (std::uint32_t n = program.table.first[1]; n < program.table.first[2]; ++n) lengths[n] *= 10;
  Contention contention;
  contention.bytes.assign(program.messages.size(), 100);
  const auto ends_with = [&](std::optional<std::uint64_t> bytes) {
    SimulationRules rules;
    rules.buffered_bytes = bytes;
    return simulate_shared(program, lengths, costs, rules, contention);
  };
  const Timeline none = ends_with(std::nullopt);
  const Timeline too_small = ends_with(99);
  const Timeline one = ends_with(100);
  CHECK(too_small.start == none.start);
  std::uint32_t earlier = 0;
  for (std::uint32_t n = program.table.size(); n < program.nodes(); ++n) {
    CHECK(one.start[n] <= none.start[n]);
    earlier += one.start[n] < none.start[n];
  }
  CHECK(earlier > 0);
}

/// Idle of a device by cause, in units: what runs takes 1, a message 4, all over one link.
std::array<double, kIdleCauses.size()> idle_of(const std::string& order, std::uint32_t device, const SimulationRules& rules) {
  const Schedule schedule = test::schedule_of(
      "schedule one_link\ndevices 2\nstages 2\nmicrobatches 3\nplace stage s on device s\n" + order +
      "cost F = 1, B = 1, message = 4\n");
  const Program program = test::program_of(schedule, test::table_of(schedule));
  const Costs costs = test::costs_of(schedule);
  Contention contention;
  contention.links = 1;
  for (std::size_t e = 0; e < program.edges.size(); ++e) {
    contention.links_of_edge.items.push_back(0);
    contention.links_of_edge.end_row();
  }
  const Timeline times = simulate_shared(program, lengths_of(program, costs), costs, rules, contention);
  std::array<double, kIdleCauses.size()> result = {};
  for (std::size_t c = 0; c < result.size(); ++c)
    result[c] = static_cast<double>(analyse(schedule, program, times).devices[DeviceId(device)].idle[c]) /
                static_cast<double>(costs.ticks_per_unit);
  return result;
}

TEST_CASE("idle by link and by queue: from when a message asks for its links, and what it takes longer than alone") {
  const auto link = static_cast<std::size_t>(IdleCause::Link);
  const auto queue = static_cast<std::size_t>(IdleCause::Queue);
  const auto message = static_cast<std::size_t>(IdleCause::Message);
  // Device 1 runs microbatch 2 after 0. Its message is ready at 3, and the two before it take the link from 1 to 9.
  const std::string late =
      "on device 0 { F(0, 0) F(0, 1) F(0, 2) B(0, 0) B(0, 1) B(0, 2) }\n"
      "on device 1 { F(1, 0) F(1, 2) F(1, 1) B(1, 0) B(1, 1) B(1, 2) }\n";
  SimulationRules rules;
  rules.links = Sharing::FirstCome;
  auto idle = idle_of(late, 1, rules);
  CHECK(idle[link] == 3);
  CHECK(idle[queue] == 0);
  CHECK(idle[message] == 4);
  // It asks only when the one before it has ended.
  rules.rendezvous = true;
  idle = idle_of(late, 1, rules);
  CHECK(idle[link] == 0);
  CHECK(idle[queue] == 3);
  CHECK(idle[message] == 4);
  // Gradients leave device 1 one after the other: the first moves alone for 1, then with half of the link, then a third.
  const std::string together =
      "on device 0 { F(0, 0) F(0, 1) F(0, 2) B(0, 0) B(0, 1) B(0, 2) }\n"
      "on device 1 { F(1, 0) F(1, 1) F(1, 2) B(1, 0) B(1, 1) B(1, 2) }\n";
  SimulationRules fair;
  fair.links = Sharing::Fair;
  idle = idle_of(together, 0, fair);
  // 1 + 1/2 of it by then, and 2.5 take 7.5: by 10 after its start, 6 longer than alone. The second has 5/6 left then and
  // takes until 12, of which device 0 computes until 11.
  CHECK(idle[link] == 6);
  CHECK(idle[message] == 4 + 1);
}

TEST_CASE("trials: the same numbers for a seed, a straggler by its factor, quantiles by nearest rank") {
  Schedule schedule;
  const Program program = one_f_one_b(schedule);
  const Costs costs = test::costs_of(schedule);
  const auto run = [&](const Chance& chance) {
    std::uint32_t done = 0;
    const std::vector<double> result = makespans_of(program, costs, {}, {}, chance, [&](std::uint32_t) { ++done; });
    CHECK(done == chance.trials);
    CHECK(std::is_sorted(result.begin(), result.end()));
    return result;
  };
  const auto per_unit = static_cast<double>(costs.ticks_per_unit);
  Chance chance;
  chance.trials = 5;
  // (M + P - 1) (F + B) = 15.
  CHECK(run(chance) == std::vector<double>(5, 15 * per_unit));
  // Device 1 in threes and sixes, four times, between the first forward and the last backward of device 0.
  chance.stragglers = {{DeviceId(1), 3.0}};
  CHECK(run(chance) == std::vector<double>(5, (1 + 4 * 9 + 2) * per_unit));
  chance.stragglers.clear();
  chance.jitter = 0.1;
  chance.trials = 50;
  const auto drawn = [&](std::uint64_t seed) {
    chance.seed = seed;
    return makespans_of(program, costs, {}, {}, chance, [](std::uint32_t) {});
  };
  const std::vector<double> first = drawn(1);
  CHECK(first == drawn(1));
  CHECK(first != drawn(2));
  CHECK(first.front() < first.back());
  CHECK(quantile({10, 20, 30, 40}, 0.5) == 20);
  CHECK(quantile({10, 20, 30, 40}, 0.51) == 30);
  CHECK(quantile({10, 20, 30, 40}, 0) == 10);
  CHECK(quantile({10, 20, 30, 40}, 1) == 40);
}

TEST_CASE("blocking devices take the 86 of 1F1B, P = 8, M = 16, message 0.2, where lanes take 77") {
  const std::filesystem::path file = std::filesystem::path(STAVE_SOURCE_DIR) / "schedules/one_f_one_b.sched";
  Argument devices;
  devices.name = "P";
  devices.number = 8;
  Argument microbatches;
  microbatches.name = "M";
  microbatches.number = 16;
  const Schedule schedule =
      test::schedule_of(test::read(file) + "\ncost message = 1/5\n", {devices, microbatches});
  const Program program = test::program_of(schedule, test::table_of(schedule));
  const Costs costs = test::costs_of(schedule);
  const auto makespan = [&](const Timeline& times) {
    const Ticks last = *std::max_element(times.end.begin(), times.end.end());
    return static_cast<double>(last) / static_cast<double>(costs.ticks_per_unit);
  };
  SimulationRules rules;
  rules.blocking = true;
  CHECK(makespan(simulate(program, costs)) == doctest::Approx(77));
  CHECK(makespan(simulate_shared(program, lengths_of(program, costs), costs, rules, {})) == doctest::Approx(85.6));
}

}  // namespace
}  // namespace stave
