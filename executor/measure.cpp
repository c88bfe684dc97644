#include "executor/measure.h"

#include <algorithm>
#include <array>
#include <map>

namespace stave {

namespace {

constexpr std::size_t kMostSteps = 31;
constexpr std::size_t kMostTimes = std::size_t{1} << 23;

constexpr std::uint32_t kAlone = UINT32_MAX;
constexpr std::uint32_t kSecond = UINT32_MAX - 1;

struct Sum {
  Ticks ns = 0;
  std::uint32_t samples = 0;
  Ticks mean() const { return (ns + samples / 2) / samples; }
};

// For every position the op that its overlapped pair has beside it; kSecond for that one, kAlone for all others. Empty
// if there are no pairs.
std::vector<std::uint32_t> seconds_of(const Table& table) {
  if (table.blocks.size() == 0) return {};
  std::vector<std::uint32_t> result(table.size(), kAlone);
  for (std::uint32_t i = 0; i < table.blocks.size(); ++i) {
    const auto block = table.blocks[i];
    if (table.device_of(block[0]) != table.device_of(block[1])) continue;
    result[block[0]] = block[1];
    result[block[1]] = kSecond;
  }
  return result;
}

}  // namespace

Ticks makespan(const Program& program, const Timeline& timeline) {
  const Table& table = program.table;
  Ticks first = kMaxTicks;
  Ticks last = 0;
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    if (table.ops.kind(table.entries[i]).optional) continue;
    first = std::min(first, timeline.start[i]);
    last = std::max(last, timeline.end[i]);
  }
  return std::max<Ticks>(0, last - first);
}

double bubble(const Program& program, const Timeline& timeline) {
  const Table& table = program.table;
  const std::vector<std::uint32_t> second = seconds_of(table);
  double busy = 0;
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    const OpKind& kind = table.ops.kind(table.entries[i]);
    const bool counts = kind.stream.empty() && !kind.optional;
    if (!counts || (!second.empty() && second[i] == kSecond)) continue;
    busy += static_cast<double>(timeline.end[i] - timeline.start[i]);
  }
  const double available = static_cast<double>(makespan(program, timeline)) * table.devices();
  return available > 0 ? 1 - busy / available : 0;
}

Measured::Measured(const Program& program)
    : program_(program), most_(std::clamp<std::size_t>(kMostTimes / std::max(1u, program.nodes()), 1, kMostSteps)) {}

void Measured::add(std::uint64_t step, const Timeline& timeline) {
  if (!steps_.empty() && (steps_.size() == most_ || steps_.front().step == 0)) steps_.pop_front();
  steps_.push_back({step, timeline, makespan(program_, timeline)});
}

std::vector<const Measured::Step*> Measured::middle() const {
  std::vector<const Step*> sorted;
  for (const Step& step : steps_) sorted.push_back(&step);
  std::ranges::stable_sort(sorted, {}, &Step::makespan);
  const auto outer = static_cast<std::ptrdiff_t>((sorted.size() + 1) / 4);
  return {sorted.begin() + outer, sorted.end() - outer};
}

std::vector<TypicalLength> Measured::lengths(const std::vector<const Step*>& steps) const {
  const Table& table = program_.table;
  const OpSet& ops = table.ops;
  const std::vector<std::uint32_t> seconds = seconds_of(table);
  // Kind and stage of the second op of a pair, then of the op itself.
  std::map<std::array<std::uint32_t, 4>, Sum> sums;
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const std::uint32_t second = seconds.empty() ? kAlone : seconds[position];
    if (second == kSecond) continue;
    const OpId op = table.entries[position];
    // Pairs have a first number above 0, and so come last.
    std::array<std::uint32_t, 4> key = {0, 0, ops.kind_of(op).value, ops.stage(op)};
    if (second != kAlone) {
      const OpId with = table.entries[second];
      key[0] = ops.kind_of(with).value + 1;
      key[1] = ops.stage(with);
    }
    Sum& mine = sums[key];
    for (const Step* step : steps) mine.ns += step->timeline.end[position] - step->timeline.start[position];
    mine.samples += static_cast<std::uint32_t>(steps.size());
  }
  std::vector<TypicalLength> result;
  for (const auto& [key, sum] : sums) {
    TypicalLength typical;
    typical.kind = KindId(key[2]);
    typical.stage = StageId(key[3]);
    if (key[0] > 0) {
      typical.with = KindId(key[0] - 1);
      typical.with_stage = StageId(key[1]);
    }
    typical.length_ns = sum.mean();
    typical.samples = sum.samples;
    result.push_back(typical);
  }
  return result;
}

std::vector<TypicalMessage> Measured::messages(const std::vector<const Step*>& steps) const {
  std::map<std::array<std::uint32_t, 3>, Sum> sums;
  for (std::uint32_t m = 0; m < program_.messages.size(); ++m) {
    const Message& message = program_.messages[m];
    const Edge& edge = program_.edges[message.edge.value];
    Sum& mine = sums[{message.payload, edge.source.value, edge.target.value}];
    const std::uint32_t node = program_.node(MessageId(m)).value;
    for (const Step* step : steps) mine.ns += step->timeline.end[node] - step->timeline.start[node];
    mine.samples += static_cast<std::uint32_t>(steps.size());
  }
  std::vector<TypicalMessage> result;
  for (const auto& [key, sum] : sums)
    result.push_back({static_cast<std::uint16_t>(key[0]), DeviceId(key[1]), DeviceId(key[2]), sum.mean()});
  return result;
}

void Measured::report(RunReport& into) const {
  const std::vector<const Step*> steps = middle();
  const Step& one = *steps[(steps.size() - 1) / 2];
  into.timeline = one.timeline;
  // What a step does before its first op or message is no part of the schedule, and of no makespan.
  const Ticks first = std::ranges::min(into.timeline.start);
  for (std::vector<Ticks>* times : {&into.timeline.start, &into.timeline.end})
    for (Ticks& each : *times) each -= first;
  into.timeline_step = one.step;
  into.makespan_ns = one.makespan;
  into.bubble = bubble(program_, into.timeline);
  into.lengths = lengths(steps);
  into.shortest_ns.assign(program_.table.size(), kMaxTicks);
  for (const Step& step : steps_)
    for (std::uint32_t i = 0; i < program_.table.size(); ++i)
      into.shortest_ns[i] = std::min(into.shortest_ns[i], step.timeline.end[i] - step.timeline.start[i]);
  into.messages = messages(steps);
}

}  // namespace stave
