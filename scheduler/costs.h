// Costs: what every op and message takes, in whole ticks. Made from the rationals of a CostSet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "core/ids.h"
#include "core/message_costs.h"
#include "core/op_set.h"
#include "core/program.h"
#include "core/setup_costs.h"
#include "core/table.h"
#include "core/ticks.h"

namespace stave {

/// Nanoseconds of a unit of time by its name, as costs files write it; 0 if it is none.
std::int64_t ns_of_unit(std::string_view unit);

/// Names of those units.
inline constexpr std::array<std::string_view, 4> kTimeUnits = {"s", "ms", "us", "ns"};

struct KindTicks {
  /// As IndexedValues.
  std::vector<Ticks> values;
  std::array<std::uint32_t, kMaxIndices> stride = {};

  std::size_t at(const OpName& op) const {
    std::size_t result = 0;
    for (std::size_t i = 0; i < kMaxIndices; ++i) result += std::size_t(op.index[i]) * stride[i];
    return result;
  }
};

struct Costs {
  /// The tick is the longest for which every cost is whole.
  Ticks ticks_per_unit = 1;
  /// What a unit is called in print; empty if nothing says.
  std::string unit;
  IdVector<KindId, KindTicks> kinds;
  MessageCosts<Ticks> message;

  /// Between two ops that follow each other on a lane.
  SetupCosts<Ticks> setups;
  /// Of an overlapped pair, by its first op; sorted.
  std::vector<std::pair<OpId, Ticks>> pairs;

  /// Duration of an op. Cost: a few ns where it is the same for all of its kind.
  Ticks of(const OpSet& ops, OpId op) const {
    const KindTicks& ticks = kinds[ops.kind_of(op)];
    if (ticks.values.size() == 1) return ticks.values[0];
    return ticks.values[ticks.at(ops.name(op))];
  }
  /// Of a message of a Program.
  Ticks of_message(const Program& program, const Message& sent) const {
    const Edge& edge = program.edges[sent.edge.value];
    return message.from(program.table.ops, program.table.entries[sent.producer], sent.payload, edge.source.value,
                        edge.target.value);
  }
  /// Between two positions that follow each other on a lane.
  Ticks setup(const Table& table, std::uint32_t before, std::uint32_t after) const {
    return setups.empty() ? 0 : setups.of(table.ops, table.entries[before], table.entries[after]);
  }
  /// Of an overlapped pair, by its first op.
  Ticks of_pair(OpId first) const;
  /// Of one position, or of a block of them (Table::blocks).
  Ticks of_block(const Table& table, std::span<const std::uint32_t> block) const {
    if (block.size() == 1) return of(table.ops, table.entries[block[0]]);
    return of_several(table, block);
  }

 private:
  Ticks of_several(const Table& table, std::span<const std::uint32_t> block) const;
};

/// None, with a diagnostic in `sink`, if the ticks of all ops together would not fit.
std::optional<Costs> make_costs(const Schedule& schedule, Diagnostics& sink);

}  // namespace stave
