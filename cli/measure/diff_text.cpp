#include "cli/measure/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

std::string number(double value) {
  // No "-0.00".
  return fmt::format("{:.2f}", std::abs(value) < 0.005 ? 0.0 : value);
}

std::string ratio(const Both& both) {
  if (both.first == both.second) return "1.000";
  return both.first == 0 ? "-" : fmt::format("{:.3f}", both.second / both.first);
}

std::string ended(const std::string& text) { return text.empty() ? "nothing" : text; }

std::string stage_text(std::uint32_t stage) { return stage == RecordedOp::kNone ? "" : fmt::format("{}", stage); }

Json ratio_json(const Both& both) {
  if (both.first == both.second) return 1.0;
  return both.first == 0 ? Json() : Json(both.second / both.first);
}

Json waits_json(const Waits& waits) {
  return {{"late_compute", waits.late_compute},
          {"queue", waits.queue},
          {"transfer", waits.transfer},
          {"other", waits.other}};
}

}  // namespace

std::string diff_text(const TableDiff& diff, const DiffNames& names) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (std::uint32_t d = 0; d < diff.devices.size(); ++d) {
    const TableDiff::Device& device = diff.devices[d];
    if (device.same)
      fmt::format_to(out, "device {:<4} the same {} op{}\n", d, device.ops[0], device.ops[0] == 1 ? "" : "s");
    else
      fmt::format_to(out, "device {:<4} op {}: {} in {}, {} in {}\n", d, device.at, ended(device.text[0]), names.first,
                     ended(device.text[1]), names.second);
  }
  if (diff.different == 0) return text + "the same order on every device\n";
  return text + fmt::format("another order on {} of {} devices\n", diff.different, diff.devices.size());
}

Json diff_json(const TableDiff& diff, const DiffNames& names) {
  Json devices = Json::array();
  for (std::uint32_t d = 0; d < diff.devices.size(); ++d) {
    const TableDiff::Device& device = diff.devices[d];
    Json each = {{"device", d}, {"same", device.same}, {"ops", {device.ops[0], device.ops[1]}}};
    if (!device.same) {
      each["at"] = device.at;
      each["first"] = device.text[0].empty() ? Json() : Json(device.text[0]);
      each["second"] = device.text[1].empty() ? Json() : Json(device.text[1]);
    }
    devices.push_back(std::move(each));
  }
  return {{"first", names.first}, {"second", names.second}, {"same", diff.different == 0}, {"devices", devices}};
}

std::string diff_text(const TimelineDiff& diff, const DiffNames& names) {
  const std::string unit = diff.unit.empty() ? "" : " " + diff.unit;
  std::string text = fmt::format("first   {}\nsecond  {}\n", names.first, names.second);
  const auto out = std::back_inserter(text);
  if (!diff.same_order)
    text += "the same ops, in another order\n";
  else if (!diff.same_program)
    text += "the same order of ops, and other costs ordered their messages\n";
  fmt::format_to(out, "\n{:<18}{:>14}  {:>14}  {:>7}\n", "", "first", "second", "ratio");
  fmt::format_to(out, "{:<18}{:>14}  {:>14}  {:>7}\n", "makespan", number(diff.makespan.first) + unit,
                 number(diff.makespan.second) + unit, ratio(diff.makespan));
  fmt::format_to(out, "\n{:<12}{:>5}  {:>13}  {:>14}  {:>7}  {:>6}\n", "op", "stage", "first, median", "second, median",
                 "ratio", "ops");
  const auto rows = [&](const std::vector<TimelineDiff::Length>& lengths) {
    for (const TimelineDiff::Length& each : lengths)
      fmt::format_to(out, "{:<12}{:>5}  {:>13}  {:>14}  {:>7}  {:>6}\n", each.kind.empty() ? "`after`" : each.kind,
                     stage_text(each.stage), number(each.median.first), number(each.median.second), ratio(each.median),
                     each.ops);
  };
  rows(diff.lengths);
  rows(diff.messages);
  fmt::format_to(out, "\n{:<10}  {:>23}  {:>20}\n", "", "start of the first op", "ops start later by");
  fmt::format_to(out, "{:<10}  {:>11} {:>11}  {:>10} {:>9}\n", "", "first", "second", "median", "at most");
  for (std::uint32_t d = 0; d < diff.devices.size(); ++d) {
    const TimelineDiff::Device& device = diff.devices[d];
    fmt::format_to(out, "device {:<3}  {:>11} {:>11}  {:>10} {:>9}\n", d, number(device.first.first),
                   number(device.first.second), number(device.skew), number(device.most_skew));
  }
  fmt::format_to(out, "\n{:<18}  {:>12}  {:>12}  {:>12}  {:>12}\n", "waits for", "late compute", "queue", "transfer",
                 "other");
  for (std::uint32_t d = 0; d < diff.devices.size(); ++d)
    for (int which : {0, 1}) {
      const Waits& waits = diff.devices[d].waits[which];
      fmt::format_to(out, "{:<10}  {:<6}  {:>12}  {:>12}  {:>12}  {:>12}\n",
                     which == 0 ? fmt::format("device {}", d) : "", which == 0 ? "first" : "second",
                     number(waits.late_compute), number(waits.queue), number(waits.transfer), number(waits.other));
    }
  return text;
}

Json diff_json(const TimelineDiff& diff, const DiffNames& names) {
  const auto rows = [](const std::vector<TimelineDiff::Length>& lengths, const char* name) {
    Json result = Json::array();
    for (const TimelineDiff::Length& each : lengths) {
      Json row = {{name, each.kind}};
      if (each.stage != RecordedOp::kNone) row["stage"] = each.stage;
      row["count"] = each.ops;
      row["first"] = each.median.first;
      row["second"] = each.median.second;
      row["ratio"] = ratio_json(each.median);
      result.push_back(std::move(row));
    }
    return result;
  };
  Json devices = Json::array();
  for (std::uint32_t d = 0; d < diff.devices.size(); ++d) {
    const TimelineDiff::Device& device = diff.devices[d];
    devices.push_back({{"device", d},
                       {"first_start", {device.first.first, device.first.second}},
                       {"skew", device.skew},
                       {"most_skew", device.most_skew},
                       {"waits", {waits_json(device.waits[0]), waits_json(device.waits[1])}}});
  }
  return {{"first", names.first},
          {"second", names.second},
          {"unit", diff.unit},
          {"same_order", diff.same_order},
          {"same_program", diff.same_program},
          {"makespan",
           {{"first", diff.makespan.first}, {"second", diff.makespan.second}, {"ratio", ratio_json(diff.makespan)}}},
          {"ops", rows(diff.lengths, "kind")},
          {"messages", rows(diff.messages, "carries")},
          {"devices", devices}};
}

}  // namespace stave
