#include "cli/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/console.h"
#include "cli/report.h"
#include "compiler/compile.h"
#include "compiler/lower.h"
#include "compiler/nearest.h"
#include "compiler/render.h"
#include "scheduler/contention/machine.h"
#include "scheduler/simulate.h"
#include "scheduler/start_times.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAllMessages = "message";
constexpr std::string_view kLink = "link";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The parts between the commas that stand in no brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> result;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '(' || text[i] == '[')) ++depth;
    if (i < text.size() && (text[i] == ')' || text[i] == ']')) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    result.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return result;
}

/// From changes to the lines that `--cost` takes.
class Changes {
 public:
  explicit Changes(const Schedule& schedule) : schedule_(schedule) {}

  Result<std::string> cost_lines(const std::string& change) const {
    std::string result;
    for (const std::string_view part : parts_of(change)) {
      const std::size_t at = part.find_first_of("=*/");
      if (part.empty() || at == std::string_view::npos || at == 0 || trimmed(part.substr(at + 1)).empty())
        return Failure{fmt::format("--what-if takes NAME=VALUE or NAME*FACTOR, and not `{}`", part)};
      std::string target(trimmed(part.substr(0, at)));
      const std::string_view value = trimmed(part.substr(at + 1));
      const std::string name = target.substr(0, target.find_first_of(" ("));
      if (name == kLink && schedule_.ops.find(kLink).value == Id<struct KindTag>::kNone)
        target.replace(0, name.size(), kAllMessages);
      else if (!known(name))
        return unknown(change, name);
      if (part[at] != '=') {
        if (target.find_first_of(" (") != std::string::npos)
          return Failure{fmt::format("--what-if {}: a factor is of all that has a name, as in `{}{}{}`", change, name,
                                     part[at], value)};
        // Messages of unlike times have no one time to take a factor of.
        std::vector<std::string> targets = {target};
        if (target == kAllMessages && !messages_alike())
          targets.assign(schedule_.payloads.begin() + 1, schedule_.payloads.end());
        for (const std::string& each : targets) {
          const std::string all = each + indices(each);
          result += fmt::format("{}{}={}{}({})", result.empty() ? "" : ",", all, all, part[at], value);
        }
        continue;
      }
      result += fmt::format("{}{}={}", result.empty() ? "" : ",", target, value);
    }
    return result;
  }

 private:
  /// From each device to each other all messages take the same.
  bool messages_alike() const {
    const MessageCosts<Rational>& costs = schedule_.costs.message;
    for (std::size_t p = 1; p < costs.size(); ++p) {
      if (costs.links(p) == costs.links(0) && (costs.by_link(p) || costs[p] == costs[0])) continue;
      if (costs.by_size(p)) return false;
      for (std::uint32_t a = 0; a < schedule_.devices; ++a)
        for (std::uint32_t b = 0; b < schedule_.devices; ++b)
          if (a != b && costs.of(p, a, b, 0) != costs.of(0, a, b, 0)) return false;
    }
    return true;
  }
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> result;
    for (const OpKind& kind : schedule_.ops.kinds()) result.push_back(kind.name);
    result.push_back(kAllMessages);
    result.push_back(kLink);
    for (const std::string& each : schedule_.payloads)
      if (!each.empty()) result.push_back(each);
    return result;
  }
  bool known(std::string_view name) const {
    const std::vector<std::string_view> all = names();
    return std::find(all.begin(), all.end(), name) != all.end();
  }
  Failure unknown(const std::string& change, const std::string& name) const {
    const std::vector<std::string_view> all = names();
    const std::string_view nearest = nearest_name(name, all);
    return Failure{fmt::format("--what-if {}: there is no op or message called `{}`; {}", change, name,
                               nearest.empty() ? fmt::format("known are {}", fmt::join(all, ", "))
                                               : fmt::format("did you mean `{}`?", nearest))};
  }

  /// Names for the indices of an op or a message, so that each of its costs is taken by itself.
  std::string indices(const std::string& name) const {
    const KindId kind = schedule_.ops.find(name);
    if (!kind.valid()) return "(a_, b_)";
    std::string result;
    for (const OpIndex& index : schedule_.ops.kinds()[kind].indices)
      if (index.written()) result += fmt::format("{}{}_", result.empty() ? "" : ", ", index.name);
    return result.empty() ? "" : "(" + result + ")";
  }

  const Schedule& schedule_;
};

Failure wrong(const std::string& change, const Sources& sources, const Diagnostics& sink) {
  return Failure{fmt::format("--what-if {} cannot be priced\n{}", change,
                             render_snippets(sources, sink, {false, terminal_width()}))};
}

std::string signed_text(double value, const std::string& text) { return (value >= 0 ? "+" : "") + text; }

double share_of(const std::optional<Rational>& value) { return value ? value->to_double() : 0; }

double units(const Report& report, Ticks time) {
  return static_cast<double>(time) / static_cast<double>(report.ticks_per_unit);
}

}  // namespace

Result<std::vector<WhatIf>> what_if(const One& one, const std::vector<Argument>& arguments,
                                    const std::vector<std::string>& changes) {
  std::vector<WhatIf> result;
  const Changes reader(*one.built.schedule);
  for (const std::string& change : changes) {
    Result<std::string> lines = reader.cost_lines(change);
    if (!lines) return lines.failure();
    Sources sources = one.loaded.sources;
    Diagnostics sink;
    const SourceId argument = sources.add("--what-if", *lines);
    const std::optional<Compiled> compiled = override_costs(*one.loaded.compiled, sources, argument, sink);
    if (!compiled) return wrong(change, sources, sink);
    Expanded expanded = expand(*compiled, arguments, sink, one.loaded.prices.get());
    if (expanded.outcome == Outcome::WrongArgument) return expanded.failure;
    if (expanded.outcome != Outcome::Done) return wrong(change, sources, sink);
    if (one.loaded.launch)
      if (const Result<void> added = add_launch(*expanded.schedule, *one.loaded.launch); !added) return added.failure();
    std::optional<Costs> costs = make_costs(*expanded.schedule, sink);
    if (!costs) return wrong(change, sources, sink);
    // The same order of ops; messages and slots as these costs need them.
    const Schedule& schedule = *expanded.schedule;
    const Table& table = *one.built.table;
    const Program program = lower(schedule, table, start_times(schedule, table, *costs));
    if (one.built.contends && !fits_in_ticks(one.loaded.machine.get(), program, *costs, 1))
      return Failure{fmt::format(
          "--what-if {}: with the slow-downs of the cluster, all ops and messages together pass 2^61 ticks", change)};
    WhatIf priced{change, std::move(*costs), {}, {}};
    priced.timeline = one.built.contends ? simulate_by(one.loaded.rules, one.loaded.machine.get(), program, priced.costs)
                                         : simulate(program, priced.costs);
    priced.report = analyse(schedule, program, priced.timeline);
    result.push_back(std::move(priced));
  }
  return result;
}

std::string what_if_text(const Built& built, const std::vector<WhatIf>& changes) {
  const Report& now = *built.report;
  std::vector<std::vector<std::string>> rows = {{"what if", "makespan", "difference", "", "span", "bubble"}};
  const auto bubble = [](const Report& report) { return fmt::format("{:.2f} %", 100 * share_of(report.bubble)); };
  rows.push_back({"now", time_text(built, now.makespan), "", "", time_text(built, now.span), bubble(now)});
  for (const WhatIf& each : changes) {
    const auto text = [&](double value) { return number_text(value) + unit_text(built); };
    const double before = units(now, now.makespan);
    const double after = units(each.report, each.report.makespan);
    const double change = before == 0 ? 0 : 100 * (after - before) / before;
    rows.push_back({each.text, text(after), signed_text(after - before, text(after - before)),
                    before == 0 ? "" : signed_text(change, fmt::format("{:.2f} %", change)),
                    text(units(each.report, each.report.span)), bubble(each.report)});
  }
  return "\n" + aligned(rows);
}

Json what_if_json(const Built& built, const std::vector<WhatIf>& changes) {
  Json result = Json::array();
  for (const WhatIf& each : changes) {
    const Json makespan = time_json(each.report, each.report.makespan);
    const std::optional<Rational> difference = [&]() -> std::optional<Rational> {
      const std::optional<Rational> after = Rational::make(each.report.makespan, each.report.ticks_per_unit);
      const std::optional<Rational> before = Rational::make(built.report->makespan, built.report->ticks_per_unit);
      return after && before ? subtract(*after, *before) : std::nullopt;
    }();
    Json entry = {{"change", each.text}, {"makespan", makespan}, {"span", time_json(each.report, each.report.span)}};
    entry["bubble"] = share_of(each.report.bubble);
    if (difference) entry["difference"] = number_json(*difference);
    result.push_back(std::move(entry));
  }
  return result;
}

}  // namespace stave
