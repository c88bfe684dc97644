// Bounds: what no order of a schedule's units can beat, with its placement, its costs and its limits.
// The statements and their proofs are in docs/bounds.md; the parts are in scheduler/bounds/.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/schedule.h"
#include "core/table.h"
#include "core/ticks.h"
#include "scheduler/costs.h"

namespace stave {

/// Which bound a figure is of.
enum class BoundBy : std::uint8_t {
  /// Longest chain, work, heads and tails: of any table.
  Closed,
  /// Arcs of data, of likeness and of memory, heads and tails on each device, Jackson's schedule: where it is affordable.
  Strong,
};

constexpr std::string_view name_of(BoundBy by) { return by == BoundBy::Strong ? "strong" : "closed"; }

struct LowerBound {
  Ticks makespan = 0;
  BoundBy makespan_by = BoundBy::Closed;
  /// The longest span of a device.
  Ticks span = 0;
  BoundBy span_by = BoundBy::Closed;
};

/// Least makespan and least longest span over all orders of the entries of `table`, fused ops and overlapped pairs as
/// they stand in it, that keep the limits of `schedule`. Messages take what they take alone, and
/// setups nothing.
///
/// The strong bound is tried where units times classes, microbatches that are alike being one of each class, are at most
/// 10 million (half a second), and for the span a million. `table` must have passed verify.
LowerBound lower_bound(const Schedule& schedule, const Table& table, const Costs& costs);

}  // namespace stave
