#include "cli/measure/timeline_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/op_set.h"
#include "core/program_file.h"
#include "scheduler/costs.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "stave-timeline";
constexpr std::int64_t kVersion = 1;
/// A thousand years of ns fit, and sums of two such times.
constexpr std::int64_t kMostTicks = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kMostDevices = 65536;
/// A list of objects in an object.
constexpr int kMostDepth = 3;

struct TooDeep {};

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Reads members of one object. The first that is wrong is kept, with its path, and the rest then count for nothing.
class Members {
 public:
  Members(const Json& object, std::string path, std::string& wrong) : path_(std::move(path)), wrong_(wrong) {
    if (object.is_object())
      object_ = &object;
    else
      refuse("", "is no object");
  }

  std::string text(const char* key) {
    const Json* const value = find(key, true);
    if (value == nullptr) return "";
    if (!value->is_string()) return refuse(key, "is no text"), "";
    return value->get<std::string>();
  }
  std::string text_or_empty(const char* key) { return find(key, false) == nullptr ? "" : text(key); }
  bool truth_or_false(const char* key) {
    const Json* const value = find(key, false);
    if (value != nullptr && !value->is_boolean()) refuse(key, "is neither true nor false");
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  std::int64_t whole(const char* key, std::int64_t least, std::int64_t most) {
    const Json* const value = find(key, true);
    if (value == nullptr) return least;
    if (!value->is_number_integer()) return refuse(key, "is no whole number"), least;
    const bool too_large = value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(most);
    if (too_large || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most)
      return refuse(key, fmt::format("is {}, outside {} to {}", value->dump(), least, most)), least;
    return value->get<std::int64_t>();
  }
  std::uint32_t index(const char* key, std::int64_t count) {
    if (count == 0) return refuse(key, "names one of none"), 0;
    return static_cast<std::uint32_t>(whole(key, 0, count - 1));
  }
  /// RecordedOp::kNone where it is not there.
  std::uint32_t index_or_none(const char* key) {
    return find(key, false) == nullptr ? RecordedOp::kNone : index(key, RecordedOp::kNone);
  }
  const Json& list(const char* key) {
    static const Json kEmpty = Json::array();
    const Json* const value = find(key, true);
    if (value == nullptr) return kEmpty;
    if (!value->is_array()) return refuse(key, "is no list"), kEmpty;
    return *value;
  }
  void refuse(const std::string& key, const std::string& what) {
    if (!wrong_.empty()) return;
    const std::string path = path_.empty() || key.empty() ? path_ + key : path_ + "." + key;
    wrong_ = fmt::format("{} {}", path.empty() ? "the file" : "`" + path + "`", what);
  }

 private:
  const Json* find(const char* key, bool must) {
    if (object_ == nullptr) return nullptr;
    const auto at = object_->find(key);
    if (at != object_->end()) return &*at;
    if (must) refuse(key, "is missing");
    return nullptr;
  }

  const Json* object_ = nullptr;
  std::string path_;
  std::string& wrong_;
};

void read_times(Members& members, Ticks& start, Ticks& end) {
  start = members.whole("start", 0, kMostTicks);
  end = members.whole("end", 0, kMostTicks);
  if (end < start) members.refuse("end", "is before its start");
}

RecordedOp read_op(Members& members, std::uint32_t devices) {
  RecordedOp op;
  op.device = members.index("device", devices);
  op.op = members.text("op");
  op.kind = members.text("kind");
  op.stage = members.index_or_none("stage");
  op.microbatch = members.index_or_none("microbatch");
  op.stream = members.text_or_empty("stream");
  op.optional = members.truth_or_false("optional");
  op.block = members.index_or_none("block");
  read_times(members, op.start, op.end);
  return op;
}

RecordedMessage read_message(Members& members, const RecordedTimeline& timeline) {
  RecordedMessage message;
  const std::vector<RecordedOp>& ops = timeline.ops;
  message.source = members.index("source", timeline.devices);
  message.target = members.index("target", timeline.devices);
  message.carries = members.text("carries");
  message.bytes = static_cast<std::uint64_t>(members.whole("bytes", 0, kMostTicks));
  message.producer = members.index("producer", static_cast<std::int64_t>(ops.size()));
  message.consumer = members.index("consumer", static_cast<std::int64_t>(ops.size()));
  message.posted = members.whole("posted", 0, kMostTicks);
  read_times(members, message.start, message.end);
  if (message.start < message.posted) members.refuse("start", "is before it was posted");
  if (message.producer < ops.size() && ops[message.producer].device != message.source)
    members.refuse("producer", "is not on the source");
  if (message.consumer < ops.size() && ops[message.consumer].device != message.target)
    members.refuse("consumer", "is not on the target");
  return message;
}

}  // namespace

std::string_view words_of(TimelineOrigin origin) {
  return origin == TimelineOrigin::Simulated ? "simulated" : "measured";
}

RecordedTimeline record(const Program& program, const Timeline& timeline, std::string schedule, TimelineOrigin origin,
                        std::span<const std::uint64_t> message_bytes) {
  const Table& table = program.table;
  RecordedTimeline result;
  result.schedule = std::move(schedule);
  result.origin = origin;
  result.unit = timeline.unit;
  result.ticks_per_unit = timeline.ticks_per_unit;
  result.program = hash_of(write_program(program));
  result.devices = table.devices();
  result.ops.reserve(table.size());
  const std::vector<std::uint32_t> blocks = blocks_of(table);
  for (std::uint32_t d = 0; d < table.devices(); ++d)
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const OpId op = table.entries[position];
      const OpKind& kind = table.ops.kind(op);
      result.ops.push_back({d, table.ops.text(op), kind.name, table.ops.stage(op), table.ops.microbatch(op), kind.stream,
                            kind.optional, blocks.empty() ? RecordedOp::kNone : blocks[position],
                            timeline.start[position], timeline.end[position]});
    }
  result.messages.reserve(program.messages.size());
  for (std::uint32_t m = 0; m < program.messages.size(); ++m) {
    const Message& message = program.messages[m];
    const Edge& edge = program.edges[message.edge.value];
    const std::uint32_t node = program.node(MessageId(m)).value;
    const Ticks ready = std::min(timeline.end[message.producer], timeline.start[node]);
    result.messages.push_back({edge.source.value, edge.target.value, program.payloads[message.payload],
                               m < message_bytes.size() ? message_bytes[m] : 0, message.producer, message.consumer,
                               ready, timeline.start[node], timeline.end[node]});
  }
  return result;
}

std::string write_timeline(const RecordedTimeline& timeline) {
  std::string text = fmt::format(
      "{{\"format\": \"{}\", \"version\": {}, \"schedule\": {}, \"origin\": \"{}\", \"unit\": {},\n \"ticks_per_unit\": {}, "
      "\"program\": \"{:016x}\", \"devices\": {}, \"ops\": [",
      kFormat, kVersion, quoted(timeline.schedule), words_of(timeline.origin), quoted(timeline.unit),
      timeline.ticks_per_unit, timeline.program, timeline.devices);
  const auto out = std::back_inserter(text);
  const char* comma = "\n";
  for (const RecordedOp& op : timeline.ops) {
    fmt::format_to(out, "{}{{\"device\": {}, \"op\": {}, \"kind\": {}", std::exchange(comma, ",\n"), op.device,
                   quoted(op.op), quoted(op.kind));
    if (op.stage != RecordedOp::kNone) fmt::format_to(out, ", \"stage\": {}", op.stage);
    if (op.microbatch != RecordedOp::kNone) fmt::format_to(out, ", \"microbatch\": {}", op.microbatch);
    if (!op.stream.empty()) fmt::format_to(out, ", \"stream\": {}", quoted(op.stream));
    if (op.optional) text += ", \"optional\": true";
    if (op.block != RecordedOp::kNone) fmt::format_to(out, ", \"block\": {}", op.block);
    fmt::format_to(out, ", \"start\": {}, \"end\": {}}}", op.start, op.end);
  }
  text += "\n], \"messages\": [";
  comma = "\n";
  for (const RecordedMessage& message : timeline.messages)
    fmt::format_to(out,
                   "{}{{\"source\": {}, \"target\": {}, \"carries\": {}, \"bytes\": {}, \"producer\": {}, "
                   "\"consumer\": {}, \"posted\": {}, \"start\": {}, \"end\": {}}}",
                   std::exchange(comma, ",\n"), message.source, message.target, quoted(message.carries), message.bytes,
                   message.producer, message.consumer, message.posted, message.start, message.end);
  return text + "\n]}\n";
}

Result<RecordedTimeline> read_timeline(std::string_view text) {
  if (text.size() > kMaxTimelineBytes)
    return Failure{fmt::format("a timeline has at most {} MiB, and this has {}", kMaxTimelineBytes >> 20,
                               text.size() >> 20)};
  Json json;
  try {
    json = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMostDepth) throw TooDeep();
      return true;
    });
  } catch (const TooDeep&) {
    return Failure{fmt::format("no timeline: values in values more than {} deep", kMostDepth)};
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string what = error.what();
    const std::size_t words = what.find("] ");
    return Failure{"no JSON: " + (words == std::string::npos ? what : what.substr(words + 2))};
  }
  std::string wrong;
  Members root(json, "", wrong);
  if (wrong.empty() && root.text("format") != kFormat) root.refuse("format", fmt::format("is not \"{}\"", kFormat));
  if (const std::int64_t version = root.whole("version", 0, kMostTicks); wrong.empty() && version != kVersion)
    root.refuse("version", fmt::format("is {}, and this program reads {}", version, kVersion));
  RecordedTimeline result;
  result.schedule = root.text("schedule");
  const std::string origin = root.text("origin");
  if (origin != "simulated" && origin != "measured") root.refuse("origin", "is neither \"simulated\" nor \"measured\"");
  result.origin = origin == "measured" ? TimelineOrigin::Measured : TimelineOrigin::Simulated;
  result.unit = root.text("unit");
  if (!result.unit.empty() && ns_of_unit(result.unit) == 0)
    root.refuse("unit", fmt::format("is none of {}, and not empty for slots", fmt::join(kTimeUnits, ", ")));
  result.ticks_per_unit = root.whole("ticks_per_unit", 1, kMostTicks);
  const std::string hash = root.text("program");
  const auto [end, error] = std::from_chars(hash.data(), hash.data() + hash.size(), result.program, 16);
  if (hash.size() != 16 || error != std::errc() || end != hash.data() + hash.size())
    root.refuse("program", "is no hash of 16 digits");
  result.devices = static_cast<std::uint32_t>(root.whole("devices", 1, kMostDevices));
  // Views of the ops' own texts, which stay where they are: room for all is made first.
  std::set<std::pair<std::uint32_t, std::string_view>> seen;
  const Json& ops = root.list("ops");
  result.ops.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size() && wrong.empty(); ++i) {
    Members members(ops[i], fmt::format("ops[{}]", i), wrong);
    result.ops.push_back(read_op(members, result.devices));
    if (!seen.emplace(result.ops.back().device, result.ops.back().op).second)
      members.refuse("op", fmt::format("is {} a second time on device {}", result.ops.back().op,
                                       result.ops.back().device));
  }
  const Json& messages = root.list("messages");
  for (std::size_t i = 0; i < messages.size() && wrong.empty(); ++i) {
    Members members(messages[i], fmt::format("messages[{}]", i), wrong);
    result.messages.push_back(read_message(members, result));
  }
  if (!wrong.empty()) return Failure{std::move(wrong)};
  return result;
}

}  // namespace stave
