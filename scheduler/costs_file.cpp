#include "scheduler/costs_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/nearest.h"
#include "scheduler/costs.h"
#include "scheduler/toml.h"

namespace stave {

namespace {

/// One key with its values: one, one a stage, or one a stage and microbatch.
struct Line {
  std::string key;
  Span span;
  std::vector<Rational> values;
  bool is_list = false;
  /// Values of each stage, one a microbatch; 0 where they are not by microbatch.
  std::size_t microbatches = 0;
  Span value_span;
};

class CostsFile : public Prices {
 public:
  CostsFile(std::vector<Line> lines, std::string unit, std::shared_ptr<const Prices> below)
      : lines_(std::move(lines)), unit_(std::move(unit)), below_(std::move(below)) {}

  bool apply(const Schedule& schedule, const World& world, CostSet& costs, Diagnostics& sink) const override {
    if (below_ != nullptr) {
      if (!below_->apply(schedule, world, costs, sink)) return false;
    } else {
      costs.unit = unit_;
      costs.setups = {};
      for (IndexedValues& each : costs.duration)
        if (std::any_of(each.values.begin(), each.values.end(), [](Rational v) { return v != Rational(0); })) each = {};
    }
    const std::size_t before = sink.errors();
    const std::optional<Rational> scale = scale_to(costs.unit);
    if (!scale) {
      refuse(sink, "costs-mismatch", lines_[0].span,
             fmt::format("these costs are in {}, and those that they replace in {}", unit_.empty() ? "slots" : unit_,
                         costs.unit));
      return false;
    }
    for (const Line& line : lines_) apply(line, *scale, schedule, costs, sink);
    return sink.errors() == before;
  }

 private:
  std::optional<Rational> scale_to(const std::string& unit) const {
    if (unit == unit_) return Rational(1);
    if (ns_of_unit(unit) == 0 || ns_of_unit(unit_) == 0) return std::nullopt;
    return Rational::make(ns_of_unit(unit_), ns_of_unit(unit));
  }

  void apply(const Line& line, Rational scale, const Schedule& schedule, CostSet& costs, Diagnostics& sink) const {
    std::vector<Rational> values;
    for (Rational each : line.values) {
      const std::optional<Rational> scaled = multiply(each, scale);
      if (!scaled) return refuse(sink, "toml-value", line.value_span, "this cost does not fit");
      values.push_back(*scaled);
    }
    for (const std::string_view between : {" with ", " after "})
      if (const std::size_t at = line.key.find(between); at != std::string::npos) {
        const std::string names[] = {line.key.substr(0, at), line.key.substr(at + between.size())};
        return two(line, values[0], names, between == " with ", schedule, costs, sink);
      }
    if (const KindId kind = schedule.ops.find(line.key); kind.valid()) {
      op(line, std::move(values), kind, schedule, costs, sink);
      return;
    }
    bool known = line.key == "message";
    for (std::size_t p = 1; p < schedule.payloads.size(); ++p) known = known || schedule.payloads[p] == line.key;
    if (!known) return unknown(line, line.key, schedule, sink);
    if (line.is_list)
      return refuse(sink, "costs-mismatch", line.value_span, "a message costs one value, and this is a list");
    for (std::size_t p = 0; p < costs.message.size(); ++p)
      if (line.key == "message" || schedule.payloads[p] == line.key) {
        costs.message.set(p, values[0]);
        costs.message_span[p] = line.value_span;
      }
  }

  void op(const Line& line, std::vector<Rational> values, KindId kind, const Schedule& schedule, CostSet& costs,
          Diagnostics& sink) const {
    IndexedValues each;
    if (line.is_list) {
      const std::vector<OpIndex>& indices = schedule.ops.kinds()[kind].indices;
      const auto of = [&](IndexRole role) {
        return std::find_if(indices.begin(), indices.end(), [&](const OpIndex& index) { return index.role == role; });
      };
      const auto differ = [&](const std::string& found, std::size_t needed, const char* one, const char* several) {
        refuse(sink, "costs-mismatch", line.value_span,
               fmt::format("`{}` has {}, and schedule `{}` has {} {}", line.key, found, schedule.name, needed,
                           needed == 1 ? one : several));
      };
      const auto counted = [](std::size_t count, const char* what) {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
      };
      const auto stage = of(IndexRole::Stage);
      if (stage == indices.end())
        return refuse(sink, "costs-mismatch", line.value_span,
                      fmt::format("`{}` has no stage in schedule `{}`: it takes one value", line.key, schedule.name));
      const std::size_t columns = std::max<std::size_t>(line.microbatches, 1);
      if (values.size() != columns * schedule.stages)
        return differ(counted(values.size() / columns, line.microbatches > 0 ? "list" : "value"), schedule.stages, "stage",
                      "stages");
      each.stride[stage - indices.begin()] = static_cast<std::uint32_t>(columns);
      if (line.microbatches > 0) {
        const auto microbatch = of(IndexRole::Microbatch);
        if (microbatch == indices.end())
          return refuse(sink, "costs-mismatch", line.value_span,
                        fmt::format("`{}` has no microbatch in schedule `{}`: it takes one value a stage", line.key,
                                    schedule.name));
        if (columns != schedule.microbatches)
          return differ(counted(columns, "value") + " a stage", schedule.microbatches, "microbatch", "microbatches");
        each.stride[microbatch - indices.begin()] = 1;
      }
    }
    each.values = std::move(values);
    costs.duration[kind] = std::move(each);
    costs.duration_span[kind] = line.value_span;
    // A fused op is the sum of its parts again, unless it is named itself.
    for (std::uint32_t k = 0; k < schedule.ops.kinds().size(); ++k) {
      const std::vector<KindId>& parts = schedule.ops.kinds()[KindId(k)].parts;
      if (std::find(parts.begin(), parts.end(), kind) != parts.end() &&
          std::none_of(lines_.begin(), lines_.end(),
                       [&](const Line& other) { return other.key == schedule.ops.kinds()[KindId(k)].name; }))
        costs.duration[KindId(k)] = {};
    }
  }

  /// Of an overlapped pair, or of an op after another.
  void two(const Line& line, Rational value, const std::string (&names)[2], bool with, const Schedule& schedule,
           CostSet& costs, Diagnostics& sink) const {
    const KindId first = schedule.ops.find(names[0]);
    const KindId second = schedule.ops.find(names[1]);
    if (!first.valid()) return unknown(line, names[0], schedule, sink);
    if (!second.valid()) return unknown(line, names[1], schedule, sink);
    if (line.is_list)
      return refuse(sink, "costs-mismatch", line.value_span,
                    fmt::format("`{}` costs one value, and this is a list", line.key));
    if (with) {
      costs.priced_pairs->push_back({first, second, value});
      return;
    }
    std::erase_if(costs.setups.rules, [&](const auto& each) { return each.before == second && each.after == first; });
    costs.setups.rules.push_back({second, first, 0, {value}});
  }

  void unknown(const Line& line, const std::string& name, const Schedule& schedule, Diagnostics& sink) const {
    std::vector<std::string_view> names = {"message", "unit"};
    for (const OpKind& kind : schedule.ops.kinds()) names.push_back(kind.name);
    for (std::size_t p = 1; p < schedule.payloads.size(); ++p) names.push_back(schedule.payloads[p]);
    Diagnostic diagnostic;
    diagnostic.kind = "costs-mismatch";
    diagnostic.message = fmt::format("schedule `{}` has nothing called `{}`", schedule.name, name);
    diagnostic.primary = {line.span, "are these the costs of another schedule?"};
    const std::string_view nearest = nearest_name(name, names);
    if (!nearest.empty()) diagnostic.fix = fmt::format("did you mean `{}`?", nearest);
    sink.add(std::move(diagnostic));
  }

  std::vector<Line> lines_;
  std::string unit_;
  std::shared_ptr<const Prices> below_;
};

/// None, and said, if it is no cost.
std::optional<Rational> cost(const std::string& key, const TomlValue& value, Diagnostics& sink) {
  if (value.kind != TomlValue::Kind::Number) {
    refuse(sink, "toml-type", value.span,
           fmt::format("the cost of `{}` is a number or a list of numbers, and this is {}", key, kind_words(value.kind)));
  } else if (!std::isfinite(value.number)) {
    refuse(sink, "toml-value", value.span, fmt::format("the cost of `{}` is {}; it must be finite", key, value.text));
  } else if (!value.exact) {
    refuse(sink, "toml-value", value.span,
           fmt::format("the cost of `{}` does not fit: costs are exact fractions of 64-bit whole numbers", key));
  } else if (*value.exact < Rational(0)) {
    refuse(sink, "negative-cost", value.span,
           fmt::format("the cost of `{}` is {}; none may be below 0", key, value.text));
  } else {
    return value.exact;
  }
  return std::nullopt;
}

/// The values of a key; of a list of lists all are equally long.
void read_values(Line& line, const TomlValue& value, Diagnostics& sink) {
  if (!line.is_list) {
    line.values.push_back(cost(line.key, value, sink).value_or(0));
    return;
  }
  if (value.items.empty()) return refuse(sink, "toml-value", value.span, fmt::format("the list of `{}` is empty", line.key));
  if (value.items[0].kind == TomlValue::Kind::Array) line.microbatches = value.items[0].items.size();
  for (const TomlValue& each : value.items) {
    const bool nested = each.kind == TomlValue::Kind::Array;
    if (nested != (value.items[0].kind == TomlValue::Kind::Array))
      return refuse(sink, "toml-type", each.span,
                    fmt::format("the list of `{}` holds numbers, one a stage, or lists, with one a microbatch; not both", line.key));
    if (!nested) {
      line.values.push_back(cost(line.key, each, sink).value_or(0));
      continue;
    }
    if (each.items.empty() || each.items.size() != line.microbatches)
      return refuse(sink, "toml-value", each.span,
                    fmt::format("the lists of `{}` have {} and {} values: each has one a microbatch", line.key,
                                line.microbatches, each.items.size()));
    for (const TomlValue& one : each.items) line.values.push_back(cost(line.key, one, sink).value_or(0));
  }
}

}  // namespace

std::shared_ptr<const Prices> read_costs_file(const Sources& sources, SourceId source, Diagnostics& sink,
                                              std::shared_ptr<const Prices> below) {
  const std::optional<TomlValue> root = parse_toml(sources, source, sink);
  if (!root) return nullptr;
  const std::size_t before = sink.errors();
  std::string unit;
  std::vector<Line> lines;
  for (const TomlMember& member : root->members) {
    if (member.key == "unit") {
      if (member.value.kind != TomlValue::Kind::Text)
        refuse(sink, "toml-type", member.value.span,
               fmt::format("`unit` takes a text, and this is {}", kind_words(member.value.kind)));
      else if (ns_of_unit(member.value.text) == 0)
        refuse(sink, "toml-unit", member.value.span,
               fmt::format("`{}` is no unit of time: {}", member.value.text, fmt::join(kTimeUnits, ", ")));
      unit = member.value.text;
      continue;
    }
    Line line;
    line.key = member.key;
    line.span = member.span;
    line.is_list = member.value.kind == TomlValue::Kind::Array;
    line.value_span = member.value.span;
    read_values(line, member.value, sink);
    lines.push_back(std::move(line));
  }
  if (sink.errors() != before) return nullptr;
  if (lines.empty()) {
    refuse(sink, "toml-missing", root->span, "a costs file needs a cost, as `F = 18522`");
    return nullptr;
  }
  return std::make_shared<CostsFile>(std::move(lines), std::move(unit), std::move(below));
}

}  // namespace stave
