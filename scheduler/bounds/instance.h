// Instance: what every order of a table's units must obey, for the lower bounds: lengths, arcs, classes, limits.
// A unit is an entry of the table, a fused op among them, or the entries of a block together. What the bounds make of
// it is heads.h, memory_arcs.h and jackson.h; why it holds for every order is docs/bounds.md.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/schedule.h"
#include "core/table.h"
#include "core/ticks.h"
#include "scheduler/costs.h"

namespace stave::bounds {

/// `from` ends at least `lag` before `to` starts.
struct Arc {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Ticks lag = 0;
};

/// Units that do the same for microbatches that are alike, in the order in which they start.
struct UnitClass {
  std::uint32_t device = 0;
  std::uint32_t lane = 0;
  std::vector<std::uint32_t> units;
};

/// Memory that a class gives back for what another has taken: its k-th unit for the k-th of that class.
struct Backing {
  std::uint32_t taker = 0;
  std::int64_t amount = 0;
};

/// One `limit` of a device, in whole parts of its own measure. Shape: by class; empty of classes on other devices.
struct MemoryLimit {
  std::uint32_t device = 0;
  std::int64_t most = 0;
  std::vector<std::int64_t> taken;
  std::vector<std::int64_t> given;
  /// Of what a class gives, what it gives back for which taker, and what is given for none.
  std::vector<std::vector<Backing>> backed;
  std::vector<std::int64_t> unbacked;
};

struct Instance {
  /// By unit.
  std::vector<Ticks> length;
  std::vector<std::uint32_t> class_of;
  /// Its place in its class.
  std::vector<std::uint32_t> place;
  /// It is no optional op, so the makespan and a span wait for it.
  std::vector<bool> counts;

  std::vector<UnitClass> classes;
  /// Shape: [device].
  std::vector<std::vector<std::uint32_t>> classes_of;
  std::uint32_t lanes = 0;
  std::vector<Arc> arcs;
  /// The first of them are needs; then come those of likeness, and of memory.
  std::size_t needs = 0;
  std::vector<MemoryLimit> limits;

  std::uint32_t size() const { return static_cast<std::uint32_t>(length.size()); }
  std::uint32_t devices() const { return static_cast<std::uint32_t>(classes_of.size()); }
  std::uint32_t device(std::uint32_t unit) const { return classes[class_of[unit]].device; }
  std::uint32_t lane(std::uint32_t unit) const { return classes[class_of[unit]].lane; }
};

/// How microbatches are treated.
enum class Alike : std::uint8_t {
  /// Those that differ in nothing but lengths and sizes of messages are in the same classes, with the least length of each
  /// class and the least message of all sizes.
  Yes,
  /// None: every unit is a class of its own, with its own length.
  No,
};

/// The units that count and those that they need; optional ones that nothing waits for are left out. What an op on a
/// stream waits for only because of where it is written is left out too: another order may write it elsewhere.
/// `table` must have passed verify. Cost: O(entries log entries + needs).
Instance make_instance(const Schedule& schedule, const Table& table, const Costs& costs, Alike alike);

/// The same instance with time running backwards: a tail of one is a head of the other. Cost: O(size).
Instance reversed(const Instance& instance);

/// Units in an order in which every arc goes forward; none if there is a cycle. Cost: O(units + arcs).
std::optional<std::vector<std::uint32_t>> topological(const Instance& instance);

}  // namespace stave::bounds
