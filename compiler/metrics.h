// Metrics: what an `expect` can ask of a priced schedule, by name, and why a device idles. The one table of those names.
// The values are the scheduler's; compiler/expect.h asks for them through an interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stave {

enum class Metric : std::uint8_t {
  Makespan,
  Bubble,
  Span,
  SpanBubble,
  Iteration,
  Period,
  Busy,
  Idle,
  PeakActivations,
  PeakMemory,
  Messages,
  Bytes,
  Count,
  Bound,
  Gap,
  Staleness,
};

/// What an argument of a metric is.
enum class MetricArgument : std::uint8_t { None, Device, Stage, Op, Cause };

struct MetricInfo {
  Metric metric = Metric::Makespan;
  std::string_view name;
  std::uint8_t least = 0;
  std::uint8_t most = 0;
  std::array<MetricArgument, 2> arguments = {};
};

inline constexpr std::array<MetricInfo, 16> kMetrics = {{
    {Metric::Makespan, "makespan", 0, 0, {}},
    {Metric::Bubble, "bubble", 0, 0, {}},
    {Metric::Span, "span", 0, 1, {MetricArgument::Device}},
    {Metric::SpanBubble, "span_bubble", 0, 0, {}},
    {Metric::Iteration, "iteration", 0, 0, {}},
    {Metric::Period, "period", 0, 0, {}},
    {Metric::Busy, "busy", 1, 1, {MetricArgument::Device}},
    {Metric::Idle, "idle", 1, 2, {MetricArgument::Device, MetricArgument::Cause}},
    {Metric::PeakActivations, "peak_activations", 1, 1, {MetricArgument::Device}},
    {Metric::PeakMemory, "peak_memory", 1, 1, {MetricArgument::Device}},
    {Metric::Messages, "messages", 0, 0, {}},
    {Metric::Bytes, "bytes", 2, 2, {MetricArgument::Device, MetricArgument::Device}},
    {Metric::Count, "count", 1, 1, {MetricArgument::Op}},
    {Metric::Bound, "bound", 0, 0, {}},
    {Metric::Gap, "gap", 0, 0, {}},
    {Metric::Staleness, "staleness", 1, 1, {MetricArgument::Stage}},
}};

constexpr const MetricInfo& info(Metric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }

/// The metric called `name`; nullptr if there is none.
constexpr const MetricInfo* find_metric(std::string_view name) {
  for (const MetricInfo& each : kMetrics)
    if (each.name == name) return &each;
  return nullptr;
}

/// Why a device idles, as `idle(d, cause)` names it.
enum class IdleCause : std::uint8_t {
  Filling,
  Draining,
  Imbalance,
  Forward,
  Gradient,
  Message,
  Queue,
  Link,
  Memory,
  Setup,
};

struct IdleCauseInfo {
  IdleCause cause = IdleCause::Filling;
  std::string_view name;
  /// What a device does then: "2 more waiting for memory".
  std::string_view words;
};

/// In the order in which they are shown.
inline constexpr std::array<IdleCauseInfo, 10> kIdleCauses = {{
    {IdleCause::Filling, "filling", "filling the pipeline"},
    {IdleCause::Draining, "draining", "draining it"},
    {IdleCause::Imbalance, "imbalance", "after its last op"},
    {IdleCause::Forward, "forward", "waiting for forwards elsewhere"},
    {IdleCause::Gradient, "gradient", "waiting for gradients elsewhere"},
    {IdleCause::Message, "message", "waiting for messages under way"},
    {IdleCause::Queue, "queue", "waiting for messages behind others"},
    {IdleCause::Link, "link", "waiting for shared links"},
    {IdleCause::Memory, "memory", "waiting for memory"},
    {IdleCause::Setup, "setup", "changing from op to op"},
}};

constexpr const IdleCauseInfo& info(IdleCause cause) { return kIdleCauses[static_cast<std::size_t>(cause)]; }

constexpr bool in_order_of_their_enums() {
  for (std::size_t i = 0; i < kMetrics.size(); ++i)
    if (static_cast<std::size_t>(kMetrics[i].metric) != i) return false;
  for (std::size_t i = 0; i < kIdleCauses.size(); ++i)
    if (static_cast<std::size_t>(kIdleCauses[i].cause) != i) return false;
  return true;
}
static_assert(in_order_of_their_enums(), "a row stands in another place than its metric or cause");

}  // namespace stave
