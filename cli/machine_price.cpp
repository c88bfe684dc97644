#include "cli/machine_price.h"

#include <algorithm>

#include "compiler/expansion.h"
#include "compiler/lower.h"
#include "compiler/verify.h"
#include "scheduler/memory.h"
#include "scheduler/order/order.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"

namespace stave {

std::optional<double> makespan_on(const ModelPrices& machine, const Compiled& compiled,
                                  const std::vector<Argument>& arguments, Diagnostics& sink) {
  const Expanded expanded = expand(compiled, arguments, sink, &machine);
  if (expanded.outcome != Outcome::Done) return std::nullopt;
  const Schedule& schedule = *expanded.schedule;
  const std::optional<Costs> costs = make_costs(schedule, sink);
  if (!costs) return std::nullopt;
  const std::optional<Table> table = order(schedule, *costs, sink);
  if (!table || sink.has_errors() || !verify_complete(schedule, *table, sink)) return std::nullopt;
  const TableNeeds needs(schedule, *table);
  const std::optional<RunOrder> proof = verify_order(schedule, *table, needs, sink);
  if (!proof) return std::nullopt;
  const Program program = lower(schedule, *table, needs, start_times(*table, needs, *proof, *costs));
  if (program.order.size() != program.nodes()) return std::nullopt;
  const Timeline times = simulate(program, *costs);
  const auto peaks = peak_memory(schedule, program, times, &sink);
  if (!peaks || !machine.verify(schedule, program, times, *peaks, sink)) return std::nullopt;
  Ticks end = 0;
  for (std::uint32_t position = 0; position < table->size(); ++position)
    if (!table->ops.kind(table->entries[position]).optional) end = std::max(end, times.end[position]);
  return static_cast<double>(end) / static_cast<double>(times.ticks_per_unit);
}

}  // namespace stave
