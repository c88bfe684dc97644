#include "cli/compare/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/compare/columns.h"

namespace stave {
namespace {

std::string beyond(const char* what, Rational peak, Rational limit) {
  return fmt::format("{} of {} are {} above the limit of {}", what, number_text(peak),
                     number_text(subtract(peak, limit)), number_text(limit));
}

std::string not_fitting(const Levels& levels, const Limits& limits) {
  if (limits.activations && levels.peak_activations > *limits.activations)
    return beyond("peak activations", levels.peak_activations, *limits.activations);
  if (!limits.memory) return "";
  if (!levels.peak_memory) return "its peak memory is beyond exact arithmetic";
  if (*levels.peak_memory <= *limits.memory) return "";
  return fmt::format("memory short by {}: its peak is {}, the limit {}",
                     memory_text(levels, subtract(*levels.peak_memory, *limits.memory)),
                     memory_text(levels, levels.peak_memory), memory_text(levels, limits.memory));
}

}  // namespace

Values Verdicts::values(Level level) const {
  Values result;
  for (const Entry& each : entries) {
    result.emplace_back();
    if (!each.levels || !each.reason.empty()) continue;
    switch (level) {
      case Level::Formula:
        result.back() = formula(*each.levels);
        break;
      case Level::Ideal:
        result.back() = each.levels->ideal;
        break;
      case Level::Priced:
        result.back() = each.levels->priced;
        break;
    }
  }
  return result;
}

std::vector<std::size_t> Verdicts::best_first() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].rank[static_cast<std::size_t>(Level::Priced)] > 0) result.push_back(i);
  std::stable_sort(result.begin(), result.end(),
                   [&](std::size_t a, std::size_t b) { return entries[a].levels->priced < entries[b].levels->priced; });
  return result;
}

Verdicts judge(std::vector<Entry> entries, const std::optional<Standard>& standard, const Limits& limits,
               bool same_size) {
  Verdicts result;
  result.entries = std::move(entries);
  for (Entry& each : result.entries) {
    if (!each.levels || !each.reason.empty()) continue;
    if (same_size && standard)
      each.reason = other_work({each.levels->devices, each.levels->microbatches, each.levels->work}, *standard,
                               each.levels->priced_by_file);
    if (each.reason.empty()) each.reason = not_fitting(*each.levels, limits);
  }
  for (const Entry& each : result.entries)
    if (each.levels && each.reason.empty() && each.levels->formula_free && !each.levels->formula)
      result.formula_free = true;
  for (const Level level : kLevels) {
    const std::vector<std::uint32_t> ranks = ranks_of(result.values(level));
    for (std::size_t i = 0; i < ranks.size(); ++i) result.entries[i].rank[static_cast<std::size_t>(level)] = ranks[i];
  }
  return result;
}

}  // namespace stave
