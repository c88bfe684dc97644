#include "cli/compare/sweep_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/compare/columns.h"
#include "cli/report.h"
#include "compiler/utf8.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

/// Points and crossings that are printed; CSV and JSON have them all.
constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostCrossings = 40;
/// Beyond so many competitors, those that are nowhere the shortest are left out.
constexpr std::size_t kMostColumns = 12;

std::vector<std::size_t> best_of(const Values& values) {
  std::vector<std::size_t> result;
  const std::vector<std::uint32_t> ranks = ranks_of(values);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] == 1) result.push_back(i);
  return result;
}

std::string names_of(const std::vector<std::size_t>& which, const std::vector<std::string>& labels,
                     const char* between) {
  std::string result;
  for (const std::size_t i : which) result += (result.empty() ? "" : between) + labels[i];
  return result.empty() ? "none" : result;
}

/// Points along the last axis, the others standing still.
struct Row {
  std::size_t first = 0;
  std::size_t count = 0;
  /// "M=8, " of the others.
  std::string prefix;
};

std::vector<Row> rows_of(const std::vector<Axis>& axes, std::size_t points) {
  std::vector<Row> result;
  const std::size_t length = axes.back().values.size();
  for (std::size_t first = 0; first < points; first += length) {
    Row row{first, length, ""};
    const std::vector<std::size_t> at = coordinates(axes, first);
    for (std::size_t a = 0; a + 1 < axes.size(); ++a)
      row.prefix += fmt::format("{}={}, ", axes[a].name, value_text(axes[a].values[at[a]]));
    result.push_back(std::move(row));
  }
  return result;
}

std::vector<Values> values_of(const Sweep& sweep, const Row& row) {
  const auto first = sweep.priced.begin() + static_cast<std::ptrdiff_t>(row.first);
  return {first, first + static_cast<std::ptrdiff_t>(row.count)};
}

std::string table_text(const Sweep& sweep, const std::vector<Axis>& axes, const std::vector<std::string>& labels) {
  std::vector<std::vector<std::string>> rows(1);
  for (const Axis& axis : axes) rows[0].push_back(axis.name);
  for (const std::string& label : labels) rows[0].push_back(label + " ");
  for (std::size_t p = 0; p < std::min(sweep.priced.size(), kMostRows); ++p) {
    const std::vector<std::size_t> at = coordinates(axes, p);
    const std::vector<std::size_t> best = best_of(sweep.priced[p]);
    rows.emplace_back();
    for (std::size_t a = 0; a < axes.size(); ++a) rows.back().push_back(value_text(axes[a].values[at[a]]));
    for (std::size_t c = 0; c < labels.size(); ++c) {
      const bool first = std::find(best.begin(), best.end(), c) != best.end();
      rows.back().push_back(number_text(sweep.priced[p][c]) + (first ? "*" : " "));
    }
  }
  std::string result = columns(rows);
  if (sweep.priced.size() > kMostRows)
    result += fmt::format("{} more points; --csv FILE has them all\n", sweep.priced.size() - kMostRows);
  return result;
}

/// Who is shortest, by stretches of the row.
std::string winners_text(const Sweep& sweep, const Row& row, const Axis& axis, const std::vector<std::string>& labels) {
  std::string result;
  for (std::size_t i = 0; i < row.count;) {
    const std::vector<std::size_t> best = best_of(sweep.priced[row.first + i]);
    std::size_t end = i + 1;
    while (end < row.count && best_of(sweep.priced[row.first + end]) == best) ++end;
    result += fmt::format("  {}{}={}{}: {}\n", row.prefix, axis.name, value_text(axis.values[i]),
                          end == i + 1 ? "" : " to " + value_text(axis.values[end - 1]), names_of(best, labels, ", "));
    i = end;
  }
  return result;
}

std::string crossing_text(const Sweep& sweep, const Crossing& crossing, const Row& row, const Axis& axis,
                          const std::vector<std::string>& labels) {
  std::string result =
      fmt::format("  {}{} passes {} between {}={} and {}", row.prefix, labels[crossing.winner], labels[crossing.loser],
                  axis.name, value_text(axis.values[crossing.from]), value_text(axis.values[crossing.to]));
  // Between the two they are equal, unless one of them has no price.
  const std::size_t middle = crossing.from + 1;
  if (middle + 1 == crossing.to && sweep.priced[row.first + middle][crossing.winner] &&
      sweep.priced[row.first + middle][crossing.loser])
    result += fmt::format(", equal at {}", value_text(axis.values[middle]));
  return result;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

std::string csv_number(Rational value) { return value.whole() ? value.text() : fmt::format("{}", value.to_double()); }

/// The same sweep, as if there were no others.
std::string of_winners(const Sweep& sweep, const std::vector<Axis>& axes, const std::vector<std::string>& labels,
                       const std::set<std::size_t>& winners) {
  Sweep some;
  some.refused = sweep.refused;
  some.unit = sweep.unit;
  std::vector<std::string> names;
  for (const std::size_t each : winners) names.push_back(labels[each]);
  for (const Values& point : sweep.priced) {
    some.priced.emplace_back();
    for (const std::size_t each : winners) some.priced.back().push_back(point[each]);
  }
  return sweep_text(some, axes, names) +
         fmt::format("\n{} more are the shortest nowhere; --csv FILE has them\n", labels.size() - winners.size());
}

}  // namespace

std::string sweep_text(const Sweep& sweep, const std::vector<Axis>& axes, const std::vector<std::string>& labels) {
  if (labels.size() > kMostColumns) {
    std::set<std::size_t> winners;
    for (const Values& point : sweep.priced)
      for (const std::size_t each : best_of(point)) winners.insert(each);
    if (winners.size() < labels.size() && !winners.empty()) return of_winners(sweep, axes, labels, winners);
  }
  std::string over;
  for (const Axis& axis : axes) over += (over.empty() ? "" : ", ") + axis.name;
  std::string result =
      fmt::format("priced makespan{} over {}; * the shortest{}\n\n{}", sweep.unit.empty() ? "" : " in " + sweep.unit,
                  over, sweep.refused > 0 ? ", - refused by a `require`" : "", table_text(sweep, axes, labels));
  std::string winners;
  std::string crossings;
  std::size_t shown = 0;
  std::size_t all = 0;
  const Axis& axis = axes.back();
  for (const Row& row : rows_of(axes, sweep.priced.size())) {
    if (row.first < kMostRows) winners += winners_text(sweep, row, axis, labels);
    for (const Crossing& each : crossings_of(values_of(sweep, row))) {
      if (++all > kMostCrossings) continue;
      ++shown;
      crossings += crossing_text(sweep, each, row, axis, labels) + "\n";
    }
  }
  result += "\nshortest\n" + winners;
  if (all == 0) return result + "\nno two change places\n";
  result += "\nwho passes whom\n" + crossings;
  if (all > shown) result += fmt::format("  and {} more; --json has them all\n", all - shown);
  return result;
}

std::string sweep_csv(const Sweep& sweep, const std::vector<Axis>& axes, const std::vector<std::string>& labels) {
  std::string result;
  for (const Axis& axis : axes) result += csv_cell(axis.name) + ",";
  for (const std::string& label : labels) result += csv_cell(label) + ",";
  result += "best\n";
  for (std::size_t p = 0; p < sweep.priced.size(); ++p) {
    const std::vector<std::size_t> at = coordinates(axes, p);
    for (std::size_t a = 0; a < axes.size(); ++a) result += csv_number(axes[a].values[at[a]]) + ",";
    for (const std::optional<Rational>& value : sweep.priced[p]) result += (value ? csv_number(*value) : "") + ",";
    const std::vector<std::size_t> best = best_of(sweep.priced[p]);
    result += (best.empty() ? "" : csv_cell(names_of(best, labels, ";"))) + "\n";
  }
  return result;
}

Json sweep_json(const Sweep& sweep, const std::vector<Axis>& axes, const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (const std::string& label : labels) names.push_back(valid_utf8(label));
  Json result = {
      {"over", Json::array()}, {"schedules", names}, {"points", Json::array()}, {"crossings", Json::array()}};
  for (const Axis& axis : axes) {
    Json values = Json::array();
    for (const Rational value : axis.values) values.push_back(number_json(value));
    result["over"].push_back({{"name", axis.name}, {"values", values}});
  }
  const auto names_at = [&](std::size_t point) {
    Json at = Json::object();
    const std::vector<std::size_t> which = coordinates(axes, point);
    for (std::size_t a = 0; a < axes.size(); ++a) at[axes[a].name] = number_json(axes[a].values[which[a]]);
    return at;
  };
  for (std::size_t p = 0; p < sweep.priced.size(); ++p) {
    Json priced = Json::array();
    for (const std::optional<Rational>& value : sweep.priced[p]) priced.push_back(value ? number_json(*value) : Json());
    Json best = Json::array();
    for (const std::size_t c : best_of(sweep.priced[p])) best.push_back(names[c]);
    result["points"].push_back({{"at", names_at(p)}, {"makespans", priced}, {"best", best}});
  }
  for (const Row& row : rows_of(axes, sweep.priced.size()))
    for (const Crossing& each : crossings_of(values_of(sweep, row)))
      result["crossings"].push_back({{"winner", names[each.winner]},
                                     {"loser", names[each.loser]},
                                     {"behind_at", names_at(row.first + each.from)},
                                     {"ahead_at", names_at(row.first + each.to)}});
  if (!sweep.unit.empty()) result["unit"] = sweep.unit;
  result["refused"] = sweep.refused;
  result["wrong"] = sweep.wrong;
  return result;
}

}  // namespace stave
