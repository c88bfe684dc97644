#include "cli/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "core/lanes.h"

namespace stave {
namespace {

constexpr double kMostNs = 100.0 * 365 * 24 * 3600 * 1e9;

/// Steps that number the ops of a kind as the OpSet does.
std::array<std::uint32_t, kMaxIndices> dense_stride(const OpKind& kind) {
  std::array<std::uint32_t, kMaxIndices> stride = {};
  std::uint32_t step = 1;
  for (std::size_t i = kind.indices.size(); i-- > 0;) {
    stride[i] = step;
    step *= kind.indices[i].extent;
  }
  return stride;
}

/// Gives every overlapped pair of a table the length that `length(first, second)` says of its positions.
template <class Length>
void set_pairs(const Table& table, Costs& costs, const Length& length) {
  costs.pairs.clear();
  for (std::size_t i = 0; i < table.blocks.size(); ++i) {
    const auto block = table.blocks[i];
    if (table.device_of(block[0]) != table.device_of(block[1])) continue;
    costs.pairs.emplace_back(table.entries[block[0]], length(block[0], block[1]));
  }
  std::sort(costs.pairs.begin(), costs.pairs.end());
}

}  // namespace

Result<Costs> costs_in_ns(const Program& program, const Costs& costs, double unit_ns) {
  Costs result = costs;
  result.ticks_per_unit = 1000;
  result.unit.clear();
  const double scale = unit_ns / static_cast<double>(costs.ticks_per_unit);
  bool fits = true;
  const auto convert = [&](Ticks& ticks) {
    const double ns = static_cast<double>(ticks) * scale;
    fits = fits && ns < kMostNs;
    ticks = fits ? static_cast<Ticks>(std::llround(ns)) : 0;
  };
  for (KindTicks& kind : result.kinds) std::for_each(kind.values.begin(), kind.values.end(), convert);
  result.message = costs.message.map<Ticks>([&](Ticks ticks) {
    convert(ticks);
    return ticks;
  });
  result.setups = costs.setups.map<Ticks>([&](Ticks ticks) {
    convert(ticks);
    return ticks;
  });
  for (auto& [first, ticks] : result.pairs) convert(ticks);
  double sum = 0;
  for (const Ticks ticks : node_costs(program, result)) sum += static_cast<double>(ticks);
  for (const Ticks ticks : setup_costs(program, result)) sum += static_cast<double>(ticks);
  if (!fits || sum >= kMostNs) return Failure{"the costs of this schedule add up to more than a hundred years"};
  return result;
}

std::vector<Ticks> node_costs(const Program& program, const Costs& costs_ns) {
  std::vector<Ticks> result;
  result.reserve(program.nodes());
  const Table& table = program.table;
  for (OpId op : table.entries) result.push_back(costs_ns.of(table.ops, op));
  // What runs as one takes what it takes together.
  for (std::size_t i = 0; i < table.blocks.size(); ++i)
    for (std::uint32_t position : table.blocks[i]) result[position] = costs_ns.of_block(table, table.blocks[i]);
  for (const Message& message : program.messages) result.push_back(costs_ns.of_message(program, message));
  return result;
}

std::vector<Ticks> setup_costs(const Program& program, const Costs& costs_ns) {
  if (costs_ns.setups.empty()) return {};
  const Table& table = program.table;
  const Lanes lanes(table);
  std::vector<Ticks> result(table.size(), 0);
  for (std::uint32_t position = 0; position < table.size(); ++position)
    if (const std::uint32_t before = lanes.previous(position); before != Lanes::kNone)
      result[position] = costs_ns.setup(table, before, position);
  return result;
}

Costs own_lengths(const Program& program, const Timeline& measured, const Costs& costs_ns) {
  Costs result = costs_ns;
  const OpSet& ops = program.table.ops;
  for (std::uint32_t k = 0; k < ops.kinds().size(); ++k) {
    const OpKind& kind = ops.kinds()[KindId(k)];
    result.kinds[KindId(k)] = {std::vector<Ticks>(kind.count, 0), dense_stride(kind)};
  }
  for (std::uint32_t position = 0; position < program.table.size(); ++position) {
    const OpId op = program.table.entries[position];
    const KindId kind = ops.kind_of(op);
    result.kinds[kind].values[op.value - ops.kinds()[kind].first] =
        measured.end[position] - measured.start[position];
  }
  set_pairs(program.table, result, [&](std::uint32_t first, std::uint32_t) {
    return measured.end[first] - measured.start[first];
  });
  return result;
}

Costs measured_messages(const Program& program, const std::vector<TypicalMessage>& lengths, const Costs& costs_ns) {
  Costs result = costs_ns;
  const std::uint32_t devices = program.table.devices();
  for (std::size_t payload = 0; payload < result.message.size(); ++payload) {
    std::vector<Ticks> links(std::size_t{devices} * devices, 0);
    for (const TypicalMessage& typical : lengths) {
      // Those of a run's other replicas are alike.
      if (typical.payload != payload || typical.source.value >= devices || typical.target.value >= devices) continue;
      links[std::size_t{typical.source.value} * devices + typical.target.value] = typical.length_ns;
    }
    result.message.set_links(payload, devices, std::make_shared<const LinkCosts<Ticks>>(std::move(links)));
  }
  return result;
}

Costs typical_lengths(const Program& program, const std::vector<TypicalLength>& lengths, const Costs& costs_ns) {
  Costs result = costs_ns;
  const OpSet& ops = program.table.ops;
  for (const TypicalLength& typical : lengths) {
    if (typical.with.valid()) continue;
    const OpKind& kind = ops.kinds()[typical.kind];
    KindTicks& ticks = result.kinds[typical.kind];
    if (!typical.stage.valid()) {
      ticks = {{typical.length_ns}, {}};
      continue;
    }
    std::size_t stage = 0;
    while (kind.indices[stage].role != IndexRole::Stage) ++stage;
    const std::uint32_t stages = kind.indices[stage].extent;
    std::array<std::uint32_t, kMaxIndices> stride = {};
    stride[stage] = 1;
    if (ticks.values.size() != stages || ticks.stride != stride) ticks = {std::vector<Ticks>(stages, 0), stride};
    ticks.values[typical.stage.value] = typical.length_ns;
  }
  std::map<std::array<std::uint32_t, 4>, Ticks> of_pairs;
  for (const TypicalLength& typical : lengths)
    if (typical.with.valid())
      of_pairs[{typical.kind.value, typical.stage.value, typical.with.value, typical.with_stage.value}] = typical.length_ns;
  set_pairs(program.table, result, [&](std::uint32_t first, std::uint32_t second) {
    const OpId a = program.table.entries[first];
    const OpId b = program.table.entries[second];
    const auto at = of_pairs.find({ops.kind_of(a).value, ops.stage(a), ops.kind_of(b).value, ops.stage(b)});
    return at == of_pairs.end() ? 0 : at->second;
  });
  return result;
}

}  // namespace stave
