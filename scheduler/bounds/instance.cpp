#include "scheduler/bounds/instance.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

#include "compiler/table_needs.h"
#include "core/lanes.h"
#include "scheduler/limit_sizes.h"

namespace stave::bounds {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

class Maker {
 public:
  Maker(const Schedule& schedule, const Table& table, const Costs& costs, Alike alike)
      : schedule_(schedule),
        table_(table),
        ops_(table.ops),
        costs_(costs),
        alike_(alike),
        lanes_(table),
        sizes_(limit_sizes(schedule)) {
    for (std::uint32_t d = 0; d < table.devices(); ++d)
      device_.insert(device_.end(), table.first[d + 1] - table.first[d], d);
    join();
    keep();
  }

  Instance make() {
    Instance result;
    result.lanes = lanes_.count();
    result.classes_of.resize(table_.devices());
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      result.length.push_back(costs_.of_block(table_, units_[unit]));
      result.counts.push_back(!optional(unit));
    }
    result.arcs = arcs_;
    result.needs = arcs_.size();
    result.class_of.assign(units_.size(), kNone);
    result.place.assign(units_.size(), 0);
    if (alike_ == Alike::Yes) share_classes(result);
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit)
      if (result.class_of[unit] == kNone) add_class(result, {unit});
    for (std::size_t which = 0; which < sizes_.size(); ++which)
      for (std::uint32_t d = 0; d < table_.devices(); ++d)
        if (sizes_[which].most[d])
          result.limits.push_back(limit(result, sizes_[which], d, *sizes_[which].most[d]));
    return result;
  }

 private:
  /// The positions of a unit.
  using Positions = std::span<const std::uint32_t>;

  bool optional(std::uint32_t unit) const { return ops_.kind(table_.entries[units_[unit][0]]).optional; }

  /// Of a position; where microbatches are to be alike, the least of all sizes.
  Ticks message(std::uint32_t position, std::uint16_t payload, std::uint32_t source, std::uint32_t target) const {
    const OpId op = table_.entries[position];
    const std::uint32_t size = costs_.message.size_of(ops_, op);
    Ticks result = costs_.message.of(payload, source, target, size);
    if (alike_ == Alike::No || size == 0) return result;
    for (std::uint32_t other = 1; other < costs_.message.sizes()->count; ++other)
      result = std::min(result, costs_.message.of(payload, source, target, other));
    return result;
  }

  void join() {
    const TableNeeds needs(schedule_, table_);
    const std::vector<std::uint32_t> block_of = blocks_of(table_);
    positions_.resize(table_.size());
    std::iota(positions_.begin(), positions_.end(), 0);
    unit_of_.assign(table_.size(), kNone);
    for (std::uint32_t position = 0; position < table_.size(); ++position) {
      if (unit_of_[position] != kNone) continue;
      const bool single = block_of.empty() || block_of[position] == kNone;
      const Positions mine =
          single ? Positions(&positions_[position], 1) : Positions(table_.blocks[block_of[position]]);
      for (std::uint32_t each : mine) unit_of_[each] = static_cast<std::uint32_t>(units_.size());
      units_.push_back(mine);
    }
    for (std::uint32_t position = 0; position < table_.size(); ++position) {
      const std::uint32_t to = unit_of_[position];
      needs.for_each(position, [&](std::uint32_t at, std::uint16_t payload) {
        if (unit_of_[at] == to) return;
        const std::uint32_t here = device_[position];
        const std::uint32_t there = device_[at];
        arcs_.push_back({unit_of_[at], to, here == there ? 0 : message(at, payload, there, here)});
      });
    }
  }

  /// Drops the optional units that no other waits for.
  void keep() {
    std::vector<std::vector<std::uint32_t>> before(units_.size());
    for (const Arc& arc : arcs_) before[arc.to].push_back(arc.from);
    std::vector<bool> kept(units_.size(), false);
    std::vector<std::uint32_t> todo;
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit)
      if (!optional(unit)) {
        kept[unit] = true;
        todo.push_back(unit);
      }
    if (todo.size() == units_.size()) return;
    while (!todo.empty()) {
      const std::uint32_t unit = todo.back();
      todo.pop_back();
      for (std::uint32_t each : before[unit])
        if (!kept[each]) {
          kept[each] = true;
          todo.push_back(each);
        }
    }
    std::vector<std::uint32_t> number(units_.size(), kNone);
    std::vector<Positions> units;
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit)
      if (kept[unit]) {
        number[unit] = static_cast<std::uint32_t>(units.size());
        units.push_back(units_[unit]);
      }
    units_ = std::move(units);
    for (std::uint32_t& unit : unit_of_) unit = unit == kNone ? kNone : number[unit];
    std::vector<Arc> arcs;
    for (const Arc& arc : arcs_)
      if (kept[arc.from] && kept[arc.to]) arcs.push_back({number[arc.from], number[arc.to], arc.lag});
    arcs_ = std::move(arcs);
  }

  /// The microbatch of a unit that is one entry, or kNone.
  std::uint32_t microbatch(std::uint32_t unit) const {
    return units_[unit].size() == 1 ? ops_.microbatch(table_.entries[units_[unit][0]]) : kNone;
  }

  /// The number of the op that is the same for microbatch 0.
  std::uint32_t key(std::uint32_t unit) const {
    const OpName name = ops_.name(table_.entries[units_[unit][0]]);
    const OpKind& kind = ops_.kinds()[name.kind];
    std::array<std::uint32_t, kMaxIndices> index = name.index;
    for (std::size_t i = 0; i < kind.indices.size(); ++i)
      if (kind.indices[i].role == IndexRole::Microbatch) index[i] = 0;
    return ops_.id(name.kind, std::span(index.data(), kind.indices.size())).value;
  }

  using Signature = std::vector<std::int64_t>;

  /// What makes a unit what it is, lengths aside: where it runs, what it takes, and its arcs. Those within its own
  /// microbatch are named by key, others by unit.
  std::vector<Signature> signatures() const {
    std::vector<std::vector<std::array<std::int64_t, 4>>> ends(units_.size());
    for (const Arc& arc : arcs_) {
      const std::uint32_t from = microbatch(arc.from);
      const std::uint32_t to = microbatch(arc.to);
      if (from != kNone && from == to) {
        ends[arc.to].push_back({0, key(arc.from), arc.lag, 0});
        ends[arc.from].push_back({1, key(arc.to), arc.lag, 0});
      } else {
        ends[arc.to].push_back({2, arc.from, arc.lag, 0});
        ends[arc.from].push_back({3, arc.to, arc.lag, 0});
      }
    }
    std::vector<Signature> result(units_.size());
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      if (microbatch(unit) == kNone) continue;
      const std::uint32_t position = units_[unit][0];
      const OpId op = table_.entries[position];
      Signature& mine = result[unit];
      mine = {key(unit), lanes_.lane(position), device_[position]};
      for (const LimitSizes& sizes : sizes_) {
        mine.push_back(sizes.taken_by(ops_, op));
        mine.push_back(sizes.given_by(ops_, op));
      }
      std::sort(ends[unit].begin(), ends[unit].end());
      for (const auto& end : ends[unit]) mine.insert(mine.end(), end.begin(), end.end());
    }
    return result;
  }

  /// Classes of the microbatches that are alike, with the arcs between their units.
  void share_classes(Instance& result) {
    const std::vector<Signature> of_unit = signatures();
    std::map<std::uint32_t, std::vector<std::uint32_t>> units_of;
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit)
      if (const std::uint32_t m = microbatch(unit); m != kNone) units_of[m].push_back(unit);
    std::map<std::vector<Signature>, std::vector<std::uint32_t>> groups;
    for (auto& [m, units] : units_of) {
      std::sort(units.begin(), units.end(), [&](std::uint32_t a, std::uint32_t b) { return of_unit[a] < of_unit[b]; });
      std::vector<Signature> all;
      for (std::uint32_t unit : units) all.push_back(of_unit[unit]);
      groups[std::move(all)].push_back(m);
    }
    // By their first microbatch, so that the numbers of classes follow the text and not a map's order.
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_first;
    for (auto& [all, members] : groups) by_first[members[0]] = members;
    for (const auto& [first, members] : by_first)
      for (std::size_t i = 0; i < units_of[first].size(); ++i) {
        std::vector<std::uint32_t> units;
        for (std::uint32_t m : members) units.push_back(units_of[m][i]);
        add_class(result, std::move(units));
      }
  }

  void add_class(Instance& result, std::vector<std::uint32_t> units) const {
    const auto number = static_cast<std::uint32_t>(result.classes.size());
    Ticks least = result.length[units[0]];
    for (std::uint32_t unit : units) least = std::min(least, result.length[unit]);
    for (std::uint32_t k = 0; k < units.size(); ++k) {
      result.length[units[k]] = least;
      result.class_of[units[k]] = number;
      result.place[units[k]] = k;
      if (k > 0) result.arcs.push_back({units[k - 1], units[k], 0});
    }
    const std::uint32_t position = units_[units[0]][0];
    result.classes_of[device_[position]].push_back(number);
    result.classes.push_back({device_[position], lanes_.lane(position), std::move(units)});
  }

  MemoryLimit limit(const Instance& instance, const LimitSizes& sizes, std::uint32_t device, std::int64_t most) const {
    MemoryLimit result;
    result.device = device;
    result.most = most;
    const std::size_t count = instance.classes.size();
    result.taken.assign(count, 0);
    result.given.assign(count, 0);
    result.backed.resize(count);
    result.unbacked.assign(count, 0);
    struct Taker {
      std::uint32_t position = 0;
      std::int64_t left = 0;
    };
    // What is taken for a (stage, microbatch, slice), by the first unit of each class.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<Taker>> takers;
    const auto visit = [&](const auto& each) {
      for (std::uint32_t c : instance.classes_of[device])
        for (std::uint32_t position : units_[instance.classes[c].units[0]])
          if (device_[position] == device) each(c, position, table_.entries[position]);
    };
    const auto triple = [&](OpId op) {
      return std::tuple(ops_.stage(op), ops_.microbatch(op), ops_.index(op, IndexRole::Slice));
    };
    visit([&](std::uint32_t c, std::uint32_t position, OpId op) {
      const std::int64_t taken = sizes.taken_by(ops_, op);
      if (taken == 0) return;
      result.taken[c] += taken;
      takers[triple(op)].push_back({position, taken});
    });
    visit([&](std::uint32_t c, std::uint32_t position, OpId op) {
      std::int64_t given = sizes.given_by(ops_, op);
      result.given[c] += given;
      for (Taker& taker : takers[triple(op)]) {
        const std::uint32_t from = unit_of_[taker.position];
        const std::uint32_t to = unit_of_[position];
        const bool alike = instance.classes[instance.class_of[from]].units.size() == instance.classes[c].units.size();
        if (given == 0 || taker.left == 0 || !alike || (from != to && !leads_to(from, to))) continue;
        const std::int64_t amount = std::min(given, taker.left);
        taker.left -= amount;
        given -= amount;
        result.backed[c].push_back({instance.class_of[from], amount});
      }
      result.unbacked[c] += given;
    });
    // What is left out may make room at any time.
    for (std::uint32_t position = table_.first[device]; position < table_.first[device + 1]; ++position) {
      const OpId op = table_.entries[position];
      if (unit_of_[position] == kNone) result.most += sizes.given_by(ops_, op);
    }
    return result;
  }

  /// Whether arcs go from one unit to another by way of units of its device and microbatch, a few steps.
  bool leads_to(std::uint32_t from, std::uint32_t to) const {
    if (before_.empty()) {
      before_.resize(units_.size());
      for (const Arc& arc : arcs_) before_[arc.to].push_back(arc.from);
    }
    std::vector<std::uint32_t> todo = {to};
    for (std::size_t next = 0; next < todo.size() && next < 64; ++next)
      for (std::uint32_t each : before_[todo[next]]) {
        if (each == from) return true;
        const bool same = device_[units_[each][0]] == device_[units_[to][0]];
        if (same && std::find(todo.begin(), todo.end(), each) == todo.end()) todo.push_back(each);
      }
    return false;
  }

  const Schedule& schedule_;
  const Table& table_;
  const OpSet& ops_;
  const Costs& costs_;
  const Alike alike_;
  const Lanes lanes_;
  const std::array<LimitSizes, 2> sizes_;
  /// By position.
  std::vector<std::uint32_t> device_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint32_t> unit_of_;
  std::vector<Positions> units_;
  std::vector<Arc> arcs_;
  mutable std::vector<std::vector<std::uint32_t>> before_;
};

}  // namespace

Instance make_instance(const Schedule& schedule, const Table& table, const Costs& costs, Alike alike) {
  return Maker(schedule, table, costs, alike).make();
}

Instance reversed(const Instance& instance) {
  Instance result = instance;
  for (UnitClass& each : result.classes) std::reverse(each.units.begin(), each.units.end());
  for (std::uint32_t unit = 0; unit < result.size(); ++unit)
    result.place[unit] =
        static_cast<std::uint32_t>(result.classes[result.class_of[unit]].units.size() - 1 - result.place[unit]);
  for (Arc& arc : result.arcs) std::swap(arc.from, arc.to);
  for (MemoryLimit& limit : result.limits) {
    // What is still held at the end is held at the beginning.
    for (std::uint32_t c = 0; c < instance.classes.size(); ++c)
      limit.most -= (limit.taken[c] - limit.given[c]) * static_cast<std::int64_t>(instance.classes[c].units.size());
    std::swap(limit.taken, limit.given);
    std::vector<std::vector<Backing>> backed(limit.backed.size());
    for (std::uint32_t c = 0; c < backed.size(); ++c)
      for (const Backing& each : limit.backed[c]) backed[each.taker].push_back({c, each.amount});
    limit.backed = std::move(backed);
    for (std::uint32_t c = 0; c < limit.given.size(); ++c) {
      limit.unbacked[c] = limit.given[c];
      for (const Backing& each : limit.backed[c]) limit.unbacked[c] -= each.amount;
    }
  }
  return result;
}

std::optional<std::vector<std::uint32_t>> topological(const Instance& instance) {
  std::vector<std::uint32_t> waiting(instance.size(), 0);
  std::vector<std::uint32_t> first(instance.size() + 1, 0);
  for (const Arc& arc : instance.arcs) {
    ++waiting[arc.to];
    ++first[arc.from + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> after(instance.arcs.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const Arc& arc : instance.arcs) after[next[arc.from]++] = arc.to;
  std::vector<std::uint32_t> result;
  result.reserve(instance.size());
  for (std::uint32_t unit = 0; unit < instance.size(); ++unit)
    if (waiting[unit] == 0) result.push_back(unit);
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::uint32_t k = first[result[i]]; k < first[result[i] + 1]; ++k)
      if (--waiting[after[k]] == 0) result.push_back(after[k]);
  if (result.size() < instance.size()) return std::nullopt;
  return result;
}

}  // namespace stave::bounds
