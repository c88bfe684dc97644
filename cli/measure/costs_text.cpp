#include "cli/measure/costs_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/measure/timeline_diff.h"
#include "core/operations.h"
#include "scheduler/costs.h"

namespace stave {
namespace {

std::string number(double value) {
  std::string text = fmt::format("{:.9f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// As a TOML key: bare, or quoted as JSON does it.
std::string key(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? name : nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string comment(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
  return text;
}

/// The ops of a device follow one another, so what they take adds up: it is their mean that tells of the sum.
struct Mean {
  double sum = 0;
  std::uint32_t count = 0;

  void add(double length) {
    sum += length;
    ++count;
  }
  void add(const Mean& other) {
    sum += other.sum;
    count += other.count;
  }
  double value() const { return count > 0 ? sum / count : 0; }
};

/// Lengths of ops by stage, in the order in which kinds come.
class Lengths {
 public:
  void add(const std::string& name, std::uint32_t stage, double length) {
    auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& each) { return each.first == name; });
    if (at == all_.end()) at = all_.insert(all_.end(), {name, {}});
    at->second[stage].add(length);
  }
  std::vector<MeasuredCosts::Line> lines() {
    std::vector<MeasuredCosts::Line> result;
    std::uint32_t stages = 0;
    for (const auto& [name, by_stage] : all_)
      for (const auto& [stage, lengths] : by_stage)
        if (stage != RecordedOp::kNone) stages = std::max(stages, stage + 1);
    for (auto& [name, by_stage] : all_) {
      Mean every;
      for (const auto& [stage, mean] : by_stage) every.add(mean);
      const double typical = every.value();
      MeasuredCosts::Line line{name, {}};
      if (by_stage.contains(RecordedOp::kNone)) {
        line.values = {typical};
      } else {
        line.values.assign(stages, typical);
        for (const auto& [stage, mean] : by_stage) line.values[stage] = mean.value();
      }
      result.push_back(std::move(line));
    }
    return result;
  }

 private:
  std::vector<std::pair<std::string, std::map<std::uint32_t, Mean>>> all_;
};

}  // namespace

std::string costs_text(const MeasuredCosts& costs) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const std::string& note : costs.notes) fmt::format_to(out, "# {}\n", comment(note));
  if (!costs.unit.empty()) fmt::format_to(out, "unit = \"{}\"\n", costs.unit);
  for (const MeasuredCosts::Line& line : costs.lines) {
    fmt::format_to(out, "{} = ", key(line.name));
    if (line.values.size() == 1) {
      fmt::format_to(out, "{}\n", number(line.values[0]));
      continue;
    }
    for (std::size_t i = 0; i < line.values.size(); ++i)
      fmt::format_to(out, "{}{}", i == 0 ? "[" : ", ", number(line.values[i]));
    text += "]\n";
  }
  return text;
}

MeasuredCosts costs_of(const ModelProfile& profile, const Program& program, const Workload& workload) {
  MeasuredCosts result;
  result.unit = "us";
  const auto us = [](Ticks ns) { return static_cast<double>(ns) / 1e3; };
  for (const OpKind& kind : program.table.ops.kinds()) {
    MeasuredCosts::Line line{kind.name, {}};
    if (kind.extent(IndexRole::Stage) == 0) continue;
    for (const StageTimes& times : profile.stages) line.values.push_back(us(times[kind.operation]));
    if (std::any_of(line.values.begin(), line.values.end(), [](double value) { return value > 0; }))
      result.lines.push_back(std::move(line));
  }
  const auto name = [&](KindId kind) { return program.table.ops.kinds()[kind].name; };
  for (const PairTime& pair : profile.pairs)
    result.lines.push_back({name(pair.first) + " with " + name(pair.second), {us(pair.ns)}});
  for (const std::string& payload : program.payloads)
    if (const std::size_t bytes = workload.payload_bytes(payload); bytes > 0)
      result.lines.push_back({payload, {us(profile.link.message_ns(bytes))}});
  result.notes.push_back(fmt::format("a message: {:.3f} us and {:.3f} GB/s", us(profile.link.latency_ns),
                                     profile.link.bytes_per_ns));
  result.notes.push_back(fmt::format("ops take {:.3f} times as long while messages are copied", profile.slow_down));
  return result;
}

MeasuredCosts costs_of(const RecordedTimeline& timeline) {
  MeasuredCosts result;
  result.unit = ns_of_unit(timeline.unit) > 0 ? timeline.unit : "";
  const double per_tick = 1 / static_cast<double>(timeline.ticks_per_unit);
  const auto length = [&](const auto& each) { return static_cast<double>(each.end - each.start) * per_tick; };
  // Overlapped pairs: two ops of one block on one device.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const RecordedOp*>> blocks;
  for (const RecordedOp& op : timeline.ops)
    if (op.block != RecordedOp::kNone) blocks[{op.block, op.device}].push_back(&op);
  Lengths ops;
  std::map<std::string, Mean> pairs;
  for (const RecordedOp& op : timeline.ops)
    if (op.block == RecordedOp::kNone || blocks[{op.block, op.device}].size() == 1) ops.add(op.kind, op.stage, length(op));
  for (const auto& [where, block] : blocks)
    if (block.size() > 1) pairs[block[0]->kind + " with " + block[1]->kind].add(length(*block[0]));
  std::map<std::string, std::vector<double>> messages;
  for (const RecordedMessage& message : timeline.messages)
    if (!message.carries.empty()) messages[message.carries].push_back(length(message));
  result.lines = ops.lines();
  for (const auto& [name, mean] : pairs) result.lines.push_back({name, {mean.value()}});
  for (auto& [name, lengths] : messages) result.lines.push_back({name, {median(lengths)}});
  result.notes.push_back(fmt::format("of a {} timeline of {}", words_of(timeline.origin), timeline.schedule));
  return result;
}

}  // namespace stave
