#include "scheduler/order/order.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "scheduler/order/blocks.h"
#include "scheduler/order/fills.h"
#include "scheduler/order/least.h"
#include "scheduler/order/units.h"
#include "scheduler/order/upper.h"

namespace stave {

namespace {

constexpr const char* kLimitNames[Units::kLimits] = {"activations", "memory"};

/// Every block as it is written, one after the other.
Table as_written(const Schedule& schedule) {
  Table table;
  table.ops = schedule.ops;
  for (const DeviceOrder& order : schedule.orders) {
    for (const OrderBlock& block : order.blocks)
      table.entries.insert(table.entries.end(), block.ops.begin(), block.ops.end());
    table.first.push_back(table.size());
  }
  find_blocks(schedule, table);
  return table;
}

Span limit_span(const DeviceOrder& order, std::size_t limit) {
  return limit == 0 ? order.activation_limit_span : order.memory_limit_span;
}

Rational limit_value(const DeviceOrder& order, std::size_t limit) {
  return limit == 0 ? *order.activation_limit : *order.memory_limit;
}

std::string list_of(const OpSet& ops, const std::vector<OpId>& list) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(list.size(), kShown); ++i) {
    if (i > 0) text += i + 1 == list.size() ? " and " : ", ";
    text += "`" + ops.text(list[i]) + "`";
  }
  if (list.size() > kShown) text += " and " + std::to_string(list.size() - kShown) + " more";
  return text;
}

std::string in_measure(std::int64_t size, Rational measure) {
  const std::optional<Rational> value = multiply(Rational(size), measure);
  return value ? value->text() : std::to_string(size);
}

/// Reports the limits that no order can keep; true if there are none.
bool limits_can_be_kept(const Units& units, Diagnostics& sink) {
  const Schedule& schedule = units.schedule();
  bool possible = true;
  for (std::uint32_t d = 0; d < schedule.devices && possible; ++d) {
    const DeviceOrder& order = schedule.orders[DeviceId(d)];
    // What a list holds is no choice: it stops where it stops.
    const bool has_pairs = std::any_of(order.blocks.begin(), order.blocks.end(),
                                       [](const OrderBlock& block) { return !block.pairs.empty(); });
    for (std::size_t limit = 0; limit < Units::kLimits && !has_pairs; ++limit) {
      const std::optional<Limit> bound = units.limit(limit, DeviceId(d));
      if (!bound) continue;
      const LeastHeld least = least_held(units, limit, DeviceId(d));
      if (least.size <= bound->most()) continue;
      possible = false;
      Diagnostic diagnostic;
      diagnostic.kind = "limit-impossible";
      const std::string need = in_measure(least.size, units.measure(limit));
      diagnostic.message = std::string("no order of device ") + std::to_string(d) + " keeps `limit " +
                           kLimitNames[limit] + " <= " + limit_value(order, limit).text() + "`: at least " + need +
                           (least.size == 1 ? " is held at once" : " are held at once");
      diagnostic.primary = {limit_span(order, limit), "the least possible is " + need};
      diagnostic.notes = {"when `" + schedule.ops.text(least.at) + "` starts, " + list_of(schedule.ops, least.holders) +
                          (least.holders.size() == 1 ? " holds it" : " hold it") + ", whatever the order"};
      sink.add(std::move(diagnostic));
    }
  }
  return possible;
}

/// What each device started, fills woven in.
std::vector<Started> weave(const std::vector<Started>& above, const std::vector<Started>& filled) {
  std::vector<Started> all;
  all.reserve(above.size() + filled.size());
  std::merge(above.begin(), above.end(), filled.begin(), filled.end(), std::back_inserter(all),
             [](const Started& a, const Started& b) {
               return a.start != b.start ? a.start < b.start : a.number < b.number;
             });
  return all;
}

/// What the lanes of a device started, in one row: an op of a stream stands behind the computing ops that ended before
/// it started.
std::vector<Started> join_lanes(const Units& units, const Upper& upper, const Fills* fills, DeviceId d) {
  const std::vector<Started> nothing;
  std::vector<Started> row;
  for (std::uint32_t lane : units.lanes_of(d)) {
    const std::vector<Started> mine = weave(upper.started(lane), fills ? fills->started(lane) : nothing);
    if (lane == d.value) {
      row = mine;
      continue;
    }
    std::vector<Started> joined;
    joined.reserve(row.size() + mine.size());
    std::size_t next = 0;
    for (const Started& each : row) {
      const bool computes = units.info(each.unit).lane == d.value;
      const Ticks end = each.start + units.duration(each.unit);
      // Of two at one time, one of them of no length, the one that was started first.
      const auto comes_before = [&](const Started& beside) {
        if (computes && beside.start < end) return true;
        if (beside.start != each.start) return !computes && beside.start < each.start;
        return beside.number < each.number;
      };
      while (next < mine.size() && comes_before(mine[next])) joined.push_back(mine[next++]);
      joined.push_back(each);
    }
    joined.insert(joined.end(), mine.begin() + static_cast<std::ptrdiff_t>(next), mine.end());
    row = std::move(joined);
  }
  return row;
}

void append(const Units& units, OpId unit, Table& table) {
  table.entries.push_back(unit);
  if (units.partner(unit).valid()) table.entries.push_back(units.partner(unit));
}

/// What a device started, then what is left of it: lists in their order, each op of an `any` or a `fill` right before
/// the first that needs it here. So a cycle that verify finds is one of the text, not of this order.
void append_stuck(const Units& units, const std::vector<Started>& started, DeviceId d, Table& table) {
  const Schedule& schedule = units.schedule();
  std::unordered_set<std::uint32_t> placed;
  for (const Started& each : started) {
    append(units, each.unit, table);
    placed.insert(each.unit.value);
    if (units.partner(each.unit).valid()) placed.insert(units.partner(each.unit).value);
  }
  const auto is_free = [&](OpId unit) {
    return unit.valid() && units.device(unit) == d && !placed.contains(unit.value) &&
           schedule.orders[d].blocks[units.info(unit).block].kind != OrderKind::List;
  };
  std::vector<std::pair<OpId, bool>> open;
  // Those that wait for each other are entered once.
  std::unordered_set<std::uint32_t> entered;
  for (const OrderBlock& block : schedule.orders[d].blocks) {
    for (OpId next : block.ops) {
      if (block.kind == OrderKind::Fill && schedule.ops.kind(next).optional) continue;
      open.push_back({next, false});
      while (!open.empty()) {
        const auto [unit, expanded] = open.back();
        open.pop_back();
        if (placed.contains(unit.value)) continue;
        if (expanded) {
          table.entries.push_back(unit);
          placed.insert(unit.value);
          continue;
        }
        if (!entered.insert(unit.value).second) continue;
        open.push_back({unit, true});
        for (OpId part : schedule.ops.parts(unit))
          for (const Dependency& need : schedule.needs[part.value])
            if (is_free(units.unit_of(need.op)) && units.unit_of(need.op) != unit)
              open.push_back({units.unit_of(need.op), false});
      }
    }
  }
}

/// Reports a list that its limit stops for ever; true if there is one.
bool is_stopped_by_limit(const Units& units, const Upper& upper, Diagnostics& sink) {
  const Schedule& schedule = units.schedule();
  for (std::uint32_t d = 0; d < schedule.devices; ++d) {
    const std::optional<OpId> stopped = upper.held_by_limit(DeviceId(d));
    if (!stopped) continue;
    const DeviceOrder& order = schedule.orders[DeviceId(d)];
    for (std::size_t limit = 0; limit < Units::kLimits; ++limit) {
      const std::optional<Limit> bound = units.limit(limit, DeviceId(d));
      if (!bound || upper.held(DeviceId(d), limit) + units.taken(limit, *stopped) <= bound->most()) continue;
      const Rational measure = units.measure(limit);
      // Of a pair, the one that takes.
      OpId taker = *stopped;
      units.for_each_size(limit, *stopped, [&](std::uint32_t m, std::int64_t taken, std::int64_t) {
        if (taken > 0 && m != units.microbatch(*stopped)) taker = units.partner(*stopped);
      });
      Diagnostic diagnostic;
      diagnostic.kind = "limit-stops-list";
      diagnostic.message = "the list of device " + std::to_string(d) + " stops for ever before `" +
                           schedule.ops.text(taker) + "`: `limit " + kLimitNames[limit] +
                           " <= " + limit_value(order, limit).text() + "` is reached and nothing gives back";
      diagnostic.primary = {limit_span(order, limit), "held here: " + in_measure(upper.held(DeviceId(d), limit), measure) +
                                                          "; `" + schedule.ops.text(taker) + "` takes " +
                                                          in_measure(units.taken(limit, *stopped), measure) + " more"};
      if (schedule.origins) {
        const Origin origin = schedule.origins->of(DeviceId(d), *stopped);
        if (origin.span.valid()) diagnostic.labels.push_back({origin.span, "the op that is held back"});
        if (!origin.note.empty()) diagnostic.notes.push_back(origin.note);
      }
      diagnostic.notes.push_back("a list keeps its order: it waits for the limit and never goes round it");
      sink.add(std::move(diagnostic));
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Table> order(const Schedule& schedule, const Costs& costs, Diagnostics& sink) {
  if (schedule.is_static()) return as_written(schedule);
  const std::optional<Units> units = Units::make(schedule, costs);
  if (!units) return as_written(schedule);
  if (!limits_can_be_kept(*units, sink)) return std::nullopt;

  std::vector<Readiness> readiness = nothing_ready(*units);
  Upper upper(*units, readiness);
  std::optional<Fills> fills;
  if (units->has_fills())
    fills.emplace(*units, readiness, upper).run();
  else
    while (upper.next_moment()) upper.step();

  std::uint32_t started = 0;
  const auto count = [&](const std::vector<Started>& all) {
    for (const Started& each : all) started += units->must_run(each.unit);
  };
  for (std::uint32_t lane = 0; lane < units->lanes().size(); ++lane) {
    count(upper.started(lane));
    if (fills) count(fills->started(lane));
  }
  const bool finished = started == units->count();
  if (!finished && is_stopped_by_limit(*units, upper, sink)) return std::nullopt;

  Table table;
  table.ops = schedule.ops;
  table.entries.reserve(units->count());
  for (std::uint32_t i = 0; i < schedule.devices; ++i) {
    const DeviceId d(i);
    const std::vector<Started> all = join_lanes(*units, upper, fills ? &*fills : nullptr, d);
    if (finished)
      for (const Started& each : all) append(*units, each.unit, table);
    else
      append_stuck(*units, all, d, table);
    table.first.push_back(table.size());
  }
  find_blocks(schedule, table);
  return table;
}

}  // namespace stave
