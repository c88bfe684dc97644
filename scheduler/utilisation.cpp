#include "scheduler/utilisation.h"

namespace stave {

std::optional<double> model_utilisation(const Schedule& schedule, const Table& table, Ticks makespan,
                                        Ticks ticks_per_unit) {
  const CostSet& costs = schedule.costs;
  if (costs.flops.empty() || makespan <= 0) return std::nullopt;
  const KindId weight = schedule.ops.find(Operation::WeightGradient);
  double done = 0;
  for (const OpId entry : table.entries)
    for (const OpId op : table.ops.parts(entry)) {
      const OpName name = table.ops.name(op);
      if (!costs.flops[name.kind].given()) continue;
      double flops = costs.flops[name.kind][name].to_double();
      if (name.kind == weight && !costs.freeze.empty())
        flops *= 1 - costs.freeze[std::size_t(table.ops.stage(op)) * schedule.microbatches + table.ops.microbatch(op)]
                         .to_double();
      done += flops;
    }
  double peak = 0;
  for (const double each : costs.peak_flops) peak += each;
  const double seconds = static_cast<double>(makespan) / static_cast<double>(ticks_per_unit) * 1e-6;
  return done / (peak * seconds);
}

}  // namespace stave
