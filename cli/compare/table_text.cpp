#include "cli/compare/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/compare/columns.h"
#include "cli/compare/words.h"
#include "cli/report.h"
#include "compiler/utf8.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

/// Of how many it is said why they are behind.
constexpr std::size_t kMostWhy = 5;

Json number_of(const std::optional<Rational>& value) { return value ? number_json(*value) : Json(); }

/// Whether some of `which` have other work than the first, or updates in between.
bool any(const Verdicts& verdicts, const std::vector<std::size_t>& which, bool (*has)(const Levels&)) {
  return std::any_of(which.begin(), which.end(), [&](std::size_t i) { return has(*verdicts.entries[i].levels); });
}

bool is_stale(const Levels& levels) { return levels.staleness > 0; }

bool works_unlike(const Verdicts& verdicts, const std::vector<std::size_t>& order) {
  const double first = verdicts.entries[order[0]].levels->account.busy;
  return std::any_of(order.begin(), order.end(), [&](std::size_t i) {
    return std::abs(verdicts.entries[i].levels->account.busy - first) > 1e-9 * first;
  });
}

std::string rows_text(const Verdicts& verdicts, const std::vector<std::size_t>& order) {
  std::vector<std::vector<std::string>> rows = {{"schedule", "formula", "ideal", "priced", "bubble", "utilisation",
                                                 "span", "work", "peak activations", "peak memory", "messages",
                                                 "staleness", "rank"}};
  const bool unlike_work = works_unlike(verdicts, order);
  const bool stale = any(verdicts, order, is_stale);
  for (const std::size_t i : order) {
    const Entry& entry = verdicts.entries[i];
    const Levels& levels = *entry.levels;
    rows.push_back({levels.title, number_text(verdicts.formula(levels)), number_text(levels.ideal),
                    number_text(levels.priced), fmt::format("{:.1f} %", 100 * levels.bubble),
                    levels.utilisation ? fmt::format("{:.1f} %", 100 * *levels.utilisation) : "", number_text(levels.span),
                    unlike_work ? number_text(levels.account.busy) : "", number_text(levels.peak_activations),
                    memory_text(levels, levels.peak_memory), fmt::to_string(levels.messages),
                    stale ? fmt::to_string(levels.staleness) : "",
                    fmt::to_string(entry.rank[static_cast<std::size_t>(Level::Priced)])});
  }
  return columns(rows);
}

/// Those whose time is that of less training than the others'.
std::string less_text(const Verdicts& verdicts, const std::vector<std::size_t>& order) {
  const auto labels = [&](const char* what, bool (*has)(const Levels&)) {
    std::string names;
    for (const std::size_t i : order)
      if (has(*verdicts.entries[i].levels)) names += (names.empty() ? "" : ", ") + verdicts.entries[i].label;
    return names.empty() ? "" : fmt::format("  {}: {}\n", what, names);
  };
  const std::string result =
      labels("some weights are frozen", [](const Levels& levels) { return levels.freezes; }) +
      labels("microbatches leave stages out", [](const Levels& levels) { return levels.visited < 1; });
  return result.empty() ? "" : "less is trained in a step:\n" + result;
}

/// Whose `factor` is not 1.
std::string scaled_text(const Verdicts& verdicts, const std::vector<std::size_t>& order, const char* what,
                        Rational (*factor)(const Levels&)) {
  std::map<std::string, std::string> scaled;
  for (const std::size_t i : order) {
    const Rational by = factor(*verdicts.entries[i].levels);
    if (by == Rational(1)) continue;
    std::string& names = scaled[by.text()];
    names += (names.empty() ? "" : ", ") + verdicts.entries[i].label;
  }
  if (scaled.empty()) return "";
  std::string result = fmt::format(
      "{} scaled, so that the forwards of a microbatch count all the same; --as-written leaves them\n", what);
  for (const auto& [by, names] : scaled) result += fmt::format("  by {}: {}\n", by, names);
  return result;
}

std::string legend(const Verdicts& verdicts, const std::vector<std::size_t>& order) {
  const std::string& unit = verdicts.entries[order[0]].levels->unit;
  std::string result;
  if (!unit.empty()) result += fmt::format("times in {}\n", unit);
  result += fmt::format("formula: the file's own `expect makespan ==`, {}\n",
                        verdicts.formula_free ? "where all messages are free" : "under the costs in force");
  result +=
      "ideal: the same table with all messages free; priced: with those in force, as are the columns behind it\n"
      "bubble: 1 - sum of busy / (makespan * devices); span: the longest of a device, from its own first op to its "
      "last\n";
  if (verdicts.entries[order[0]].levels->utilisation)
    result += "utilisation: operations of F, I and W / (priced * peak of the devices)\n";
  if (works_unlike(verdicts, order)) result += "work: what a device is busy, on average\n";
  result += less_text(verdicts, order);
  if (any(verdicts, order, is_stale))
    result += "staleness: updates between the weights read and the update that uses the gradient\n";
  result += scaled_text(verdicts, order, "costs of ops, and sizes, are",
                        [](const Levels& levels) { return levels.share.time; });
  if (std::any_of(order.begin(), order.end(),
                  [&](std::size_t i) { return verdicts.entries[i].levels->priced_by_file; }))
    result += scaled_text(verdicts, order, "numbers of activations are",
                          [](const Levels& levels) { return levels.share.activations; });
  return result;
}

/// Entries that run on other devices, or other microbatches, than the first.
std::string unlike_text(const Verdicts& verdicts, const std::vector<std::size_t>& order) {
  const Levels& first = *verdicts.entries[order[0]].levels;
  for (const std::size_t i : order) {
    const Levels& levels = *verdicts.entries[i].levels;
    if (levels.devices == first.devices && levels.microbatches == first.microbatches) continue;
    return fmt::format("unlike sizes: {} has {} devices and {} microbatches, {} {} and {}\n",
                       verdicts.entries[order[0]].label, first.devices, first.microbatches, verdicts.entries[i].label,
                       levels.devices, levels.microbatches);
  }
  return "";
}

std::string left_out_text(const Verdicts& verdicts) {
  std::size_t width = 0;
  for (const Entry& each : verdicts.entries)
    if (!each.reason.empty()) width = std::max(width, each.label.size());
  std::string result;
  for (const Entry& each : verdicts.entries)
    if (!each.reason.empty()) result += fmt::format("  {:<{}}  {}\n", each.label, width, each.reason);
  return result.empty() ? "" : "left out\n" + result;
}

}  // namespace

std::string table_text(const Verdicts& verdicts, bool sorted) {
  const std::vector<std::size_t> best = verdicts.best_first();
  std::vector<std::size_t> order = best;
  if (!sorted) std::sort(order.begin(), order.end());
  std::string result;
  const auto part = [&](const std::string& text) {
    if (!text.empty()) result += (result.empty() ? "" : "\n") + text;
  };
  if (!order.empty()) {
    part(rows_text(verdicts, order));
    part(legend(verdicts, order) + unlike_text(verdicts, order));
  }
  part(left_out_text(verdicts));
  if (order.empty()) part("none of the schedules fits\n");
  part(turns_text(verdicts));
  std::string reasons;
  for (std::size_t i = 1; i < std::min(best.size(), kMostWhy + 1); ++i)
    reasons += fmt::format("{}\n", fmt::join(why(verdicts.entries[best[0]], verdicts.entries[best[i]]), "\n  "));
  part(reasons);
  return result;
}

Json table_json(const Verdicts& verdicts) {
  const std::vector<std::size_t> best = verdicts.best_first();
  Json result = {{"formula_for", verdicts.formula_free ? "free messages" : "the costs in force"},
                 {"schedules", Json::array()}};
  for (const Entry& entry : verdicts.entries) {
    Json each = {
        {"label", valid_utf8(entry.label)}, {"file", valid_utf8(entry.file)}, {"ranked", entry.reason.empty()}};
    if (!entry.reason.empty()) each["reason"] = valid_utf8(entry.reason);
    if (entry.levels) {
      const Levels& levels = *entry.levels;
      if (!levels.unit.empty()) each["unit"] = levels.unit;
      each["title"] = valid_utf8(levels.title);
      each["devices"] = levels.devices;
      each["microbatches"] = levels.microbatches;
      each["scaled"] = {{"costs", number_of(levels.share.time)},
                        {"sizes", number_of(levels.share.size)},
                        {"activations", number_of(levels.share.activations)}};
      each["formula"] = number_of(verdicts.formula(levels));
      each["ideal"] = number_of(levels.ideal);
      each["priced"] = number_of(levels.priced);
      each["span"] = number_of(levels.span);
      each["bubble"] = levels.bubble;
      each["span_bubble"] = levels.span_bubble;
      if (levels.utilisation) each["utilisation"] = *levels.utilisation;
      each["work"] = levels.account.busy;
      each["peak_activations"] = number_of(levels.peak_activations);
      each["peak_memory"] = number_of(levels.peak_memory);
      each["messages"] = levels.messages;
      each["staleness"] = levels.staleness;
      each["freezes"] = levels.freezes;
      each["stages_visited"] = levels.visited;
      Json idle = Json::object();
      for (const IdleCauseInfo& cause : kIdleCauses)
        idle[std::string(cause.name)] = levels.account.idle[static_cast<std::size_t>(cause.cause)];
      each["mean_idle"] = idle;
      each["critical_path"] = {{"ops", levels.account.path_op_time},
                               {"messages", levels.account.path_messages},
                               {"message_time", levels.account.path_message_time}};
      for (const Level level : kLevels) {
        const std::uint32_t rank = entry.rank[static_cast<std::size_t>(level)];
        each["rank"][std::string(name_of(level))] = rank == 0 ? Json() : Json(rank);
      }
    }
    result["schedules"].push_back(std::move(each));
  }
  result["best_first"] = Json::array();
  for (const std::size_t i : best) result["best_first"].push_back(valid_utf8(verdicts.entries[i].label));
  result["turns"] = Json::array();
  for (std::size_t i = 0; i + 1 < kLevels.size(); ++i)
    for (const Turn& turn : turns_between(verdicts.values(kLevels[i]), verdicts.values(kLevels[i + 1])))
      result["turns"].push_back({{"from", name_of(kLevels[i])},
                                 {"to", name_of(kLevels[i + 1])},
                                 {"winner", valid_utf8(verdicts.entries[turn.winner].label)},
                                 {"loser", valid_utf8(verdicts.entries[turn.loser].label)},
                                 {"were_equal", turn.were_equal}});
  result["why"] = Json::array();
  for (std::size_t i = 1; i < best.size(); ++i)
    result["why"].push_back(
        valid_utf8(fmt::format("{}", fmt::join(why(verdicts.entries[best[0]], verdicts.entries[best[i]]), " "))));
  return result;
}

}  // namespace stave
