#include "executor/measure.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stave {

namespace {

constexpr std::size_t kMostSteps = 31;
constexpr std::size_t kMostTimes = std::size_t{1} << 23;

}  // namespace

Ticks makespan(const Program& program, const Timeline& timeline) {
  const std::size_t ops = program.table.size();
  if (ops == 0) return 0;
  Ticks first = timeline.start[0];
  Ticks last = timeline.end[0];
  for (std::size_t i = 0; i < ops; ++i) {
    first = std::min(first, timeline.start[i]);
    last = std::max(last, timeline.end[i]);
  }
  return last - first;
}

double bubble(const Program& program, const Timeline& timeline) {
  double busy = 0;
  for (std::size_t i = 0; i < program.table.size(); ++i)
    busy += static_cast<double>(timeline.end[i] - timeline.start[i]);
  const double available = static_cast<double>(makespan(program, timeline)) * program.table.devices();
  return available > 0 ? 1 - busy / available : 0;
}

Measured::Measured(const Program& program)
    : program_(program), most_(std::clamp<std::size_t>(kMostTimes / std::max(1u, program.nodes()), 1, kMostSteps)) {}

void Measured::add(std::uint64_t step, const Timeline& timeline) {
  if (!steps_.empty() && (steps_.size() == most_ || steps_.front().step == 0)) steps_.pop_front();
  steps_.push_back({step, timeline, makespan(program_, timeline)});
}

Measured::Typical Measured::typical() const {
  std::vector<const Step*> sorted;
  for (const Step& step : steps_) sorted.push_back(&step);
  std::ranges::stable_sort(sorted, {}, &Step::makespan);
  const Step& median = *sorted[(sorted.size() - 1) / 2];
  return {median.step, &median.timeline};
}

std::vector<MedianLength> Measured::medians() const {
  const OpSet& ops = program_.table.ops;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Ticks>> lengths;
  for (std::uint32_t position = 0; position < program_.table.size(); ++position) {
    const OpId op = program_.table.entries[position];
    std::vector<Ticks>& mine = lengths[{ops.kind_of(op).value, ops.stage(op)}];
    for (const Step& step : steps_) mine.push_back(step.timeline.end[position] - step.timeline.start[position]);
  }
  std::vector<MedianLength> result;
  for (auto& [key, values] : lengths) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::ranges::nth_element(values, middle);
    MedianLength median;
    median.kind = KindId(key.first);
    median.stage = StageId(key.second);
    median.length_ns = *middle;
    median.samples = static_cast<std::uint32_t>(values.size());
    result.push_back(median);
  }
  return result;
}

}  // namespace stave
