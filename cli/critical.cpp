#include "cli/critical.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/report.h"
#include "scheduler/critical_path.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

/// Stages, and links, that have a line; JSON has them all.
constexpr std::size_t kMostLines = 8;

/// Lines of the largest parts, and one for the others; none for what takes no time.
template <class Part, class Name>
void add_rows(std::vector<std::vector<std::string>>& rows, const Built& built, std::vector<Part> parts,
              const char* plural, const Name& name) {
  const Ticks makespan = built.report->makespan;
  const auto row = [&](std::string text, const Blame& part) {
    const double share = makespan == 0 ? 0 : 100 * static_cast<double>(part.time) / static_cast<double>(makespan);
    rows.push_back({std::move(text), time_text(built, part.time), fmt::format("{:.1f} %", share),
                    std::to_string(part.count)});
  };
  std::erase_if(parts, [](const Part& part) { return part.time == 0; });
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.time > b.time; });
  Blame others;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i < kMostLines || parts.size() == kMostLines + 1) {
      row(name(parts[i]), parts[i]);
      continue;
    }
    others.time += parts[i].time;
    others.count += parts[i].count;
  }
  if (others.count > 0) row(fmt::format("{} more {}", parts.size() - kMostLines, plural), others);
}

std::string name_of_stage(const StageBlame& part) {
  return part.stage == UINT32_MAX ? "no stage" : fmt::format("stage {}", part.stage);
}

template <class Visit>
void for_each_op(const Built& built, std::uint32_t device, const Visit& visit) {
  const Table& table = built.program->table;
  for (std::uint32_t at = table.first[device]; at < table.first[device + 1]; ++at)
    visit(at, table.ops.text(table.entries[at]));
}

}  // namespace

std::string critical_text(const Built& built) {
  const CriticalPath path = critical_path(*built.program, *built.timeline, *built.costs, built.turns);
  if (path.nodes.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"critical path", "time", "share", "count"}};
  // Only where a message that takes a shared link for no time kept others waiting.
  std::vector<KindBlame> kinds = path.kinds;
  if (path.waiting > 0) {
    KindBlame waiting;
    waiting.name = "waiting";
    waiting.time = path.waiting;
    kinds.push_back(std::move(waiting));
  }
  add_rows(rows, built, kinds, "kinds", [](const KindBlame& part) { return part.name; });
  rows.push_back({"", "", "", ""});
  add_rows(rows, built, path.stages, "stages", name_of_stage);
  add_rows(rows, built, path.links, "links", [](const LinkBlame& part) {
    return fmt::format("link {} to {}", part.source.value, part.target.value);
  });
  std::string result = "\n" + aligned(rows);
  if (!built.timeline->came.empty()) return result + "slack is not known with --buffered\n";
  const std::vector<Ticks> spare = slack(*built.program, *built.timeline, *built.costs, built.turns);
  const auto end = spare.begin() + static_cast<std::ptrdiff_t>(built.program->table.size());
  result += fmt::format("{} of {} ops have no slack: each moment that one takes longer makes all of it longer{}\n",
                        std::count(spare.begin(), end, 0), built.program->table.size(),
                        built.contends ? ", while messages take turns as they did" : "");
  return result;
}

Json critical_json(const Built& built) {
  const CriticalPath path = critical_path(*built.program, *built.timeline, *built.costs, built.turns);
  const auto part = [&](Json json, const Blame& blame) {
    json["time"] = time_json(*built.report, blame.time);
    json["count"] = blame.count;
    return json;
  };
  Json result = {{"kinds", Json::array()}, {"stages", Json::array()}, {"links", Json::array()}};
  if (path.waiting > 0) result["waiting"] = time_json(*built.report, path.waiting);
  for (const KindBlame& each : path.kinds) result["kinds"].push_back(part({{"kind", each.name}}, each));
  for (const StageBlame& each : path.stages)
    result["stages"].push_back(part({{"stage", each.stage == UINT32_MAX ? Json() : Json(each.stage)}}, each));
  for (const LinkBlame& each : path.links)
    result["links"].push_back(part({{"source", each.source.value}, {"target", each.target.value}}, each));
  return result;
}

std::string slack_text(const Built& built) {
  const std::vector<Ticks> spare = slack(*built.program, *built.timeline, *built.costs, built.turns);
  std::vector<std::vector<std::string>> rows = {{"device", "op", "start", "end", "slack"}};
  for (std::uint32_t d = 0; d < built.program->table.devices(); ++d)
    for_each_op(built, d, [&](std::uint32_t at, std::string op) {
      rows.push_back({std::to_string(d), std::move(op), time_text(built, built.timeline->start[at]),
                      time_text(built, built.timeline->end[at]), time_text(built, spare[at])});
    });
  return "\n" + aligned(rows);
}

void add_slack(Json& report, const Built& built) {
  const std::vector<Ticks> spare = slack(*built.program, *built.timeline, *built.costs, built.turns);
  for (std::uint32_t d = 0; d < built.program->table.devices(); ++d) {
    Json ops = Json::array();
    for_each_op(built, d, [&](std::uint32_t at, const std::string& op) {
      ops.push_back({{"op", op},
                     {"start", time_json(*built.report, built.timeline->start[at])},
                     {"end", time_json(*built.report, built.timeline->end[at])},
                     {"slack", time_json(*built.report, spare[at])}});
    });
    report["devices"][d]["ops"] = std::move(ops);
  }
}

}  // namespace stave
