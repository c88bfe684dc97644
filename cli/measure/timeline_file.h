// The timeline file: a Timeline with the names of its program, as JSON, so that a prediction and a measurement can be laid
// over one another, or costs be made of one, by a later command. Comparing is timeline_diff.h.
//
//   {"format": "stave-timeline", "version": 1, "schedule": "zb_h1 P=4 M=8", "origin": "simulated", "unit": "us",
//    "ticks_per_unit": 1000, "program": "91b5f0c2d1e7a604", "devices": 4, "ops": [
//   {"device": 0, "op": "F(0, 0)", "kind": "F", "stage": 0, "microbatch": 0, "start": 0, "end": 18522000}, ...
//   ], "messages": [
//   {"source": 0, "target": 1, "carries": "activation", "bytes": 0, "producer": 0, "consumer": 24, "posted": 18522000,
//    "start": 18522000, "end": 19123000}, ...
//   ]}
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/program.h"
#include "core/result.h"
#include "core/timeline.h"

namespace stave {

/// Most bytes of such a file: about half a million ops with their messages.
inline constexpr std::size_t kMaxTimelineBytes = std::size_t(128) << 20;

enum class TimelineOrigin : std::uint8_t { Simulated, Measured };

std::string_view words_of(TimelineOrigin origin);

struct RecordedOp {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t device = 0;
  /// As an author writes it: with the device it names an op of a table.
  std::string op;
  std::string kind;
  /// kNone where the kind has no such index.
  std::uint32_t stage = kNone;
  std::uint32_t microbatch = kNone;
  /// Empty for the compute lane.
  std::string stream;
  /// Whether the makespan does without it.
  bool optional = false;
  /// Ops of one number run as one (Table::blocks); kNone by itself.
  std::uint32_t block = kNone;
  Ticks start = 0;
  Ticks end = 0;
};

struct RecordedMessage {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  /// The payload; empty without data.
  std::string carries;
  /// 0 if it is not known.
  std::uint64_t bytes = 0;
  /// Indices of ops: who makes the data, and who reads it first.
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  /// When it could have been sent, when it was, when it had arrived. Unit: ticks.
  Ticks posted = 0;
  Ticks start = 0;
  Ticks end = 0;
};

struct RecordedTimeline {
  std::string schedule;
  TimelineOrigin origin = TimelineOrigin::Simulated;
  /// As Timeline::unit and Timeline::ticks_per_unit.
  std::string unit;
  Ticks ticks_per_unit = 1;
  /// hash_of(write_program(program)): the same order with its messages has the same.
  std::uint64_t program = 0;
  std::uint32_t devices = 0;
  /// In the order of the program's table, then messages in issue order.
  std::vector<RecordedOp> ops;
  std::vector<RecordedMessage> messages;
};

/// `message_bytes` has one value a message, or none at all. `posted`, when a message's data was ready, is the end of its
/// producer. Cost: O(nodes), and writing the program once.
RecordedTimeline record(const Program& program, const Timeline& timeline, std::string schedule, TimelineOrigin origin,
                        std::span<const std::uint64_t> message_bytes = {});

/// A line an op and a message. Cost: about 120 bytes each.
std::string write_timeline(const RecordedTimeline& timeline);

/// Errors, with the line and column or with the path of the value ("ops[17].start"): no JSON, another kind of file or
/// version, more than kMaxTimelineBytes, a member that is missing or of another type, a number out of its range, an op
/// or device that is not there, an end before its start, an op twice. Cost: O(size), some ten times its memory.
Result<RecordedTimeline> read_timeline(std::string_view text);

}  // namespace stave
