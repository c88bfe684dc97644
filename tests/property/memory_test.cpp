// The memory that a run takes is that which the program's own times say is held at most: counted here once more, from the
// times of a simulation alone, and held byte for byte against what a device of the executor asks for.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "executor/aligned.h"
#include "executor/device.h"
#include "executor/prepare.h"
#include "executor/stage/transformer.h"
#include "scheduler/alive.h"
#include "scheduler/analysis.h"
#include "scheduler/simulate.h"
#include "tests/property/library.h"
#include "tests/property/lowered.h"

namespace stave {
namespace {

/// Counts what is asked for.
class CountingMemory : public Memory {
 public:
  std::byte* allocate(std::size_t bytes) override {
    bytes_ += bytes;
    return host_memory().allocate(bytes);
  }
  void clear(std::byte* data, std::size_t bytes) override { host_memory().clear(data, bytes); }
  void release(std::byte* data) override { host_memory().release(data); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override { host_memory().copy(to, from, bytes); }

  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// How many of some intervals overlap at most; what ends when another begins makes room for it.
std::uint32_t most_at_once(const std::vector<std::pair<Ticks, Ticks>>& intervals) {
  std::vector<std::pair<Ticks, int>> changes;
  for (const auto& [begin, end] : intervals) {
    changes.push_back({begin, 1});
    changes.push_back({end, -1});
  }
  std::ranges::sort(changes);
  int now = 0;
  int most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return static_cast<std::uint32_t>(most);
}

/// Of a device, by payload: outputs from the start of their op to the end of the last message that carries them away and of
/// the last op there that reads them; what is received from the end of the op that makes it to that of its last reader.
std::vector<std::uint32_t> values_held(const Program& program, const Plan& plan, const Timeline& times, DeviceId d) {
  std::vector<std::vector<std::pair<Ticks, Ticks>>> held(program.payloads.size());
  // By maker and payload.
  std::map<std::pair<OpId, std::uint16_t>, Ticks> until;
  for (const Message& m : program.messages) {
    const Edge& edge = program.edges[m.edge.value];
    if (m.payload == 0) continue;
    const NodeId node = program.node(MessageId(static_cast<std::uint32_t>(&m - program.messages.data())));
    if (edge.source == d) {
      Ticks& end = until[{program.table.entries[m.producer], m.payload}];
      end = std::max(end, times.end[node.value]);
    }
    if (edge.target == d) held[m.payload].push_back({times.end[m.producer], times.end[m.last_consumer]});
  }
  const std::uint32_t first = program.table.first[d.value];
  const std::uint32_t last = program.table.first[d.value + 1];
  for (std::uint32_t position = first; position < last; ++position)
    for (std::uint32_t i = program.reads.first[position]; i < program.reads.first[position + 1]; ++i) {
      Ticks& end = until[{plan.expected[i], program.reads.items[i].payload}];
      end = std::max(end, times.end[position]);
    }
  for (std::uint32_t position = first; position < last; ++position)
    for (const SlotUse& use : program.writes[position])
      held[use.payload].push_back({times.start[position], until[{program.table.entries[position], use.payload}]});
  std::vector<std::uint32_t> result;
  for (const auto& intervals : held) result.push_back(most_at_once(intervals));
  return result;
}

/// Activations of a device: from the start of the first op that touches a microbatch's (or slice's) at a stage to the end
/// of the last.
std::uint32_t activations_held(const Program& program, const Plan& plan, const Timeline& times, DeviceId d) {
  const OpSet& ops = program.table.ops;
  std::map<std::size_t, std::pair<Ticks, Ticks>> held;
  for (std::uint32_t position = program.table.first[d.value]; position < program.table.first[d.value + 1]; ++position) {
    const OpId op = program.table.entries[position];
    if (plan.work[position] != Work::Train) continue;
    const std::size_t triple = plan.model.triple(ops.stage(op), ops.microbatch(op), slice_of(ops, op));
    const auto [at, is_new] = held.try_emplace(triple, times.start[position], 0);
    at->second.second = std::max(at->second.second, times.end[position]);
  }
  std::vector<std::pair<Ticks, Ticks>> intervals;
  for (const auto& [triple, interval] : held) intervals.push_back(interval);
  return most_at_once(intervals);
}

TEST_CASE("the library: a device takes what is held at most, byte for byte, of activations and of messages") {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 4000; ++i) bytes.push_back(static_cast<std::uint8_t>(i * i));
  const auto corpus = std::make_shared<const Corpus>(std::move(bytes));
  ModelConfig config;
  config.width = 16;
  config.sequence = 32;
  config.rows = 1;
  for (const std::filesystem::path& file : test::library()) {
    CAPTURE(file.filename().string());
    Schedule schedule = test::schedule_of(test::read(file));
    // Of messages that take no time, one may leave as the op after its own begins, and then each has a slot.
    schedule.costs.message.assign(schedule.payloads.size(), *Rational::make(1, 5));
    const Program program = test::program_of(schedule, test::table_of(schedule));
    Diagnostics sink;
    const std::optional<Costs> costs = make_costs(schedule, sink);
    REQUIRE(costs);
    const Timeline times = simulate(program, *costs);
    const Report report = analyse(schedule, program, times);
    const Result<Plan> plan = make_plan(program, true);
    REQUIRE(plan);
    Transformer model(config, corpus);
    REQUIRE(model.configure(plan.value().model));
    model.create();
    const std::vector<std::size_t> payloads = payload_sizes(program, model);
    for (std::uint32_t i = 0; i < program.table.devices(); ++i) {
      const DeviceId d(i);
      CAPTURE(i);
      const std::uint32_t activations = activations_held(program, plan.value(), times, d);
      CHECK(report.devices[d].peak_activations == activations);
      std::size_t due = activations * round_up(Device::stash_bytes(plan.value(), model, d));
      const std::vector<std::uint32_t> values = values_held(program, plan.value(), times, d);
      for (std::size_t payload = 0; payload < values.size(); ++payload) due += values[payload] * round_up(payloads[payload]);
      CountingMemory memory;
      const Device device(program, plan.value(), model, d, payloads, memory);
      CHECK(memory.bytes() == due);
    }
  }
}

TEST_CASE("for every schedule of the library: the parts of a peak make it up, and nothing over time is above it") {
  for (const std::filesystem::path& file : test::library()) {
    CAPTURE(file);
    Schedule schedule = test::schedule_of(test::read(file));
    // Slots have a size, too.
    schedule.costs.message_sizes.assign(schedule.payloads.size(), Rational(3));
    const Program program = test::program_of(schedule, test::table_of(schedule));
    Diagnostics sink;
    const std::optional<Costs> costs = make_costs(schedule, sink);
    REQUIRE(costs);
    const Timeline times = simulate(program, *costs);
    const auto peaks = peak_memory(schedule, program, times);
    REQUIRE(peaks);
    for (std::uint32_t d = 0; d < program.table.devices(); ++d) {
      const PeakMemory& peak = (*peaks)[DeviceId(d)];
      const Alive alive = alive_at(peak, DeviceId(d), schedule, program, times);
      const double size = peak.size.to_double();
      CHECK(alive.weights + alive.state + alive.versions + alive.all_activations() + alive.all_slots() ==
            doctest::Approx(size));
      double slots = 0;
      for (std::size_t p = 0; p < schedule.payloads.size(); ++p) slots += 3 * program.slots[DeviceId(d)].by_payload[p];
      CHECK(alive.all_slots() == slots);
      const std::vector<MemoryStep> steps = memory_over_time(schedule, program, times, DeviceId(d));
      REQUIRE(!steps.empty());
      CHECK(steps.front().time == 0);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(steps[i].held <= doctest::Approx(size));
        if (i > 0) CHECK(steps[i - 1].time < steps[i].time);
      }
    }
  }
}

}  // namespace
}  // namespace stave
