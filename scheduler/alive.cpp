#include "scheduler/alive.h"

#include <algorithm>

namespace stave {

namespace {

double size_of(const IdVector<KindId, IndexedValues>& sizes, const OpSet& ops, OpId op) {
  const KindId kind = ops.kind_of(op);
  return kind.value < sizes.size() && sizes[kind].given() ? sizes[kind][ops.name(op)].to_double() : 0;
}

}  // namespace

double Alive::activations_of(std::uint32_t stage) const {
  double sum = 0;
  const auto at = activations.find(stage);
  if (at != activations.end())
    for (const auto& [microbatch, size] : at->second) sum += size;
  return sum;
}

double Alive::all_activations() const {
  double sum = 0;
  for (const auto& [stage, microbatches] : activations) sum += activations_of(stage);
  return sum;
}

double Alive::all_slots() const {
  double sum = 0;
  for (const Slots& each : slots) sum += each.count * each.size;
  return sum;
}

Alive alive_at(const PeakMemory& peak, DeviceId device, const Schedule& schedule, const Program& program,
               const Timeline& timeline) {
  const Table& table = program.table;
  const CostSet& costs = schedule.costs;
  Alive result;
  std::vector<bool> has(schedule.stages, false);
  const Ticks now = peak.position == OpId::kNone ? 0 : timeline.start[peak.position];
  for (std::uint32_t position = table.first[device.value]; position < table.first[device.value + 1]; ++position) {
    const OpId op = table.entries[position];
    const std::uint32_t stage = table.ops.stage(op);
    if (stage >= schedule.stages) continue;
    if (!has[stage]) {
      has[stage] = true;
      result.weights += stage < costs.weights.size() ? costs.weights[stage].to_double() : 0;
      result.state += stage < costs.state.size() ? costs.state[stage].to_double() : 0;
    }
    if (peak.position == OpId::kNone || timeline.start[position] > now) continue;
    const bool ended = position != peak.position && timeline.end[position] <= now;
    result.activations[stage][table.ops.microbatch(op)] +=
        size_of(costs.memory_taken, table.ops, op) - (ended ? size_of(costs.memory_given, table.ops, op) : 0);
  }
  const std::vector<std::uint32_t>& slots = program.slots[device].by_payload;
  for (std::size_t p = 0; p < std::min(slots.size(), costs.message_sizes.size()); ++p)
    if (const double size = costs.message_sizes[p].to_double(); slots[p] > 0 && size > 0)
      result.slots.push_back({static_cast<std::uint16_t>(p), slots[p], size});
  result.versions = std::max(0.0, peak.size.to_double() - result.weights - result.state - result.all_activations() -
                                      result.all_slots());
  return result;
}

}  // namespace stave
