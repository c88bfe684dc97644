#include "cli/compare/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "cli/compare/columns.h"
#include "cli/report.h"

namespace stave {
namespace {

/// Names and turns that are printed; JSON has them all.
constexpr std::size_t kMostNames = 8;
constexpr std::size_t kMostTurns = 6;

std::string_view words_of(const std::optional<IdleCause>& cause) { return cause ? info(*cause).words : "of work"; }

std::string count(std::uint32_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

/// What the messages on the two critical paths have to do with it; empty if nothing.
std::string paths(const Entry& shorter, const Entry& longer) {
  const Account& less = shorter.levels->account;
  const Account& more = longer.levels->account;
  if (more.path_message_time == 0 && less.path_message_time == 0) return "";
  std::string result = fmt::format("Its critical path crosses {} that take {}, against {} that take {}",
                                   count(more.path_messages, "message"), number_text(more.path_message_time),
                                   less.path_messages, number_text(less.path_message_time));
  const std::optional<SlowLink> link = slow_link(less, more);
  if (link && more.crossed.size() > 1)
    result += fmt::format("; between devices {} and {} {} against {}, {} more", link->longer.a, link->longer.b,
                          link->longer.count, link->shorter.count, number_text(link->longer.time - link->shorter.time));
  return result + ".";
}

std::string ranking_of(const Verdicts& verdicts, Level level) {
  const Values values = verdicts.values(level);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i]) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return *values[a] < *values[b]; });
  std::string result;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == kMostNames) return result + fmt::format("; and {} more", order.size() - i);
    const bool same_as_before = i > 0 && *values[order[i]] == *values[order[i - 1]];
    const bool same_as_next = i + 1 < order.size() && i + 1 < kMostNames && *values[order[i]] == *values[order[i + 1]];
    result += (i == 0 ? "" : same_as_before ? ", " : "; ") + verdicts.entries[order[i]].label;
    if (!same_as_next) result += " " + number_text(values[order[i]]);
  }
  return result;
}

std::string turn_text(const Verdicts& verdicts, const Turn& turn, const Values& before, const Values& after) {
  const std::string& winner = verdicts.entries[turn.winner].label;
  const std::string& loser = verdicts.entries[turn.loser].label;
  const std::string ahead = number_text(subtract(*after[turn.loser], *after[turn.winner]));
  if (turn.were_equal)
    return fmt::format("{} and {} part: equal, then {} is ahead by {}", winner, loser, winner, ahead);
  return fmt::format("{} passes {}: behind by {}, then ahead by {}", winner, loser,
                     number_text(subtract(*before[turn.winner], *before[turn.loser])), ahead);
}

}  // namespace

std::vector<std::string> why(const Entry& shorter, const Entry& longer) {
  const Levels& less = *shorter.levels;
  const Levels& more = *longer.levels;
  if (less.priced == more.priced)
    return {fmt::format("{} and {} take the same time, {}.", shorter.label, longer.label, number_text(less.priced))};
  std::vector<std::string> result = {fmt::format("{} is ahead of {} by {} ({} against {}).", shorter.label,
                                                 longer.label, number_text(subtract(more.priced, less.priced)),
                                                 number_text(less.priced), number_text(more.priced))};
  std::string list;
  for (const Reason& each : reasons(less.account, more.account))
    list += fmt::format("{}{} {} {}", list.empty() ? "" : ", ", number_text(std::abs(each.more)),
                        each.more > 0 ? "more" : "less", words_of(each.cause));
  result.push_back(fmt::format("A device of {} has on average {}.", longer.label, list));
  if (std::string crossed = paths(shorter, longer); !crossed.empty()) result.push_back(std::move(crossed));
  return result;
}

std::string turns_text(const Verdicts& verdicts) {
  if (verdicts.best_first().size() < 2) return "";
  std::string result;
  std::vector<Level> levels;
  for (const Level level : kLevels) {
    const Values values = verdicts.values(level);
    if (std::count_if(values.begin(), values.end(), [](const auto& each) { return each.has_value(); }) < 2) continue;
    levels.push_back(level);
    result += fmt::format("by {:<8} {}\n", name_of(level), ranking_of(verdicts, level));
  }
  bool turns = false;
  for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
    const Values before = verdicts.values(levels[i]);
    const Values after = verdicts.values(levels[i + 1]);
    const std::vector<Turn> all = turns_between(before, after);
    if (all.empty()) continue;
    turns = true;
    result += fmt::format("from {} to {} the ranking turns:\n", name_of(levels[i]), name_of(levels[i + 1]));
    for (std::size_t t = 0; t < std::min(all.size(), kMostTurns); ++t)
      result += fmt::format("  {}\n", turn_text(verdicts, all[t], before, after));
    if (all.size() > kMostTurns) result += fmt::format("  and {} more pairs\n", all.size() - kMostTurns);
  }
  if (!turns) result += "the ranking turns between none of these levels\n";
  return result;
}

}  // namespace stave
