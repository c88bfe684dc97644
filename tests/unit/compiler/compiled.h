// Texts compiled and expanded for tests, with what comes of them in lines that a test can hold.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/expansion.h"

namespace stave {

/// Two devices with a stage each and two microbatches, to which a test adds an order.
inline const std::string kTwo =
    "schedule two(P = 2, M = 2)\n"
    "devices P\n"
    "stages P\n"
    "microbatches M\n"
    "place stage s on device s\n";

/// An order for it.
inline const std::string kInOrder = "on device d { for m in microbatches { F(d, m) B(d, m) } }\n";

struct Built {
  Sources sources;
  Diagnostics sink;
  std::optional<Compiled> compiled;
  Expanded expanded;

  const Schedule& schedule() const {
    REQUIRE_MESSAGE(expanded.schedule.has_value(), said());
    return *expanded.schedule;
  }

  /// "line:column: message [kind]", then its labels, notes and fix, a line each.
  std::string said() const {
    std::string result;
    for (const Diagnostic& each : sink.all()) {
      const auto place = [&](Span span) {
        if (!span.valid()) return std::string("nowhere");
        const LineColumn at = sources.place(span.source, span.begin);
        const std::string source = span.source.value == 0 ? "" : sources[span.source].name + ":";
        return fmt::format("{}{}:{} `{}`", source, at.line, at.column, sources.text(span));
      };
      result += fmt::format("{}: {} [{}]\n", place(each.primary.span), each.message, each.kind);
      for (const Label& label : each.labels) result += fmt::format("  {}: {}\n", place(label.span), label.text);
      for (const std::string& note : each.notes) result += fmt::format("  = {}\n", note);
      if (!each.fix.empty()) result += fmt::format("  fix: {}\n", each.fix);
    }
    return result;
  }

  /// What a device runs: "F(0, 0) B(0, 0) | any F(0, 1) | fill W(0, 0) | limit 4".
  std::string order(std::uint32_t device) const {
    const DeviceOrder& order = schedule().orders[DeviceId(device)];
    std::string result;
    for (const OrderBlock& block : order.blocks) {
      if (!result.empty()) result += " | ";
      std::string ops;
      for (OpId op : block.ops) ops += (ops.empty() ? "" : " ") + schedule().ops.text(op);
      result += (block.kind == OrderKind::List ? "" : block.kind == OrderKind::Any ? "any " : "fill ") + ops;
    }
    if (order.activation_limit) result += " | limit " + order.activation_limit->text();
    if (order.memory_limit) result += " | memory " + order.memory_limit->text();
    return result;
  }

  OpId op(const std::string& text) const {
    const OpSet& ops = schedule().ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i)
      if (ops.text(OpId(i)) == text) return OpId(i);
    FAIL("no op " << text);
    return OpId();
  }

  /// What an op needs: "F(0, 0) by activation, F(1, 0)".
  std::string needs(const std::string& name) const {
    std::string result;
    for (const Dependency& need : schedule().needs[op(name).value]) {
      if (!result.empty()) result += ", ";
      result += schedule().ops.text(need.op);
      if (need.payload != 0) result += " by " + schedule().payloads[need.payload];
    }
    return result;
  }

  std::string cost(const std::string& name) const {
    const OpName op_name = schedule().ops.name(op(name));
    return schedule().costs.duration[op_name.kind][op_name].text();
  }
};

inline Built build(const std::string& text, const std::vector<std::string>& arguments = {},
                   const std::string& costs = "") {
  Built built;
  const SourceId source = built.sources.add("test.sched", text);
  built.compiled = compile(built.sources, source, built.sink);
  if (!built.compiled) {
    built.expanded.outcome = Outcome::Rejected;
    return built;
  }
  if (!costs.empty()) {
    const SourceId argument = built.sources.add("--cost", costs);
    built.compiled = override_costs(*built.compiled, built.sources, argument, built.sink);
    if (!built.compiled) {
      built.expanded.outcome = Outcome::WrongArgument;
      return built;
    }
  }
  std::vector<Argument> values;
  for (const std::string& each : arguments) {
    const Result<Argument> argument = read_argument(each);
    REQUIRE_MESSAGE(argument.ok(), each);
    values.push_back(argument.value());
  }
  built.expanded = expand(*built.compiled, values, built.sink);
  return built;
}

/// What is said of `kTwo` with these lines.
inline std::string said_of(const std::string& lines) { return build(kTwo + lines).said(); }

}  // namespace stave
