#include "scheduler/bounds.h"

#include <algorithm>

#include "scheduler/bounds/closed.h"
#include "scheduler/bounds/instance.h"
#include "scheduler/bounds/strong.h"

namespace stave {

namespace {

/// Units times classes.
constexpr std::uint64_t kMostForMakespan = 10'000'000;
constexpr std::uint64_t kMostForSpan = 1'000'000;
/// Entries for which an instance is made at all.
constexpr std::uint32_t kMostEntries = 1u << 20;

void strengthen(LowerBound& result, bounds::Instance instance) {
  const std::uint64_t size = std::uint64_t(instance.size()) * instance.classes.size();
  if (size > kMostForMakespan) return;
  const bool span = size <= kMostForSpan;
  const std::optional<bounds::Strong> strong = bounds::strong_bound(std::move(instance), span);
  if (!strong) return;
  result.makespan = std::max(result.makespan, strong->makespan);
  result.makespan_by = BoundBy::Strong;
  if (!strong->span) return;
  result.span = std::max(result.span, *strong->span);
  result.span_by = BoundBy::Strong;
}

}  // namespace

LowerBound lower_bound(const Schedule& schedule, const Table& table, const Costs& costs) {
  const bounds::Closed closed = bounds::closed_forms(schedule, table, costs);
  LowerBound result;
  result.makespan = closed.makespan;
  for (Ticks span : closed.span) result.span = std::max(result.span, span);
  if (table.size() > kMostEntries) return result;
  bounds::Instance alike = bounds::make_instance(schedule, table, costs, bounds::Alike::Yes);
  const std::vector<Ticks> least = alike.length;
  strengthen(result, std::move(alike));
  // Where microbatches differ, likeness has made some shorter.
  if (std::uint64_t(least.size()) * least.size() > kMostForMakespan) return result;
  bounds::Instance unlike = bounds::make_instance(schedule, table, costs, bounds::Alike::No);
  if (unlike.length != least || costs.message.sizes() != nullptr) strengthen(result, std::move(unlike));
  return result;
}

}  // namespace stave
