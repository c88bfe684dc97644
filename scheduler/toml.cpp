#include "scheduler/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/nearest.h"

#include <toml++/toml.h>

namespace stave {

namespace {

/// The exact value of a decimal number as TOML writes it: sign, digits with underscores, a point, an exponent. None if
/// it is written otherwise, or does not fit.
std::optional<Rational> exact_value(std::string_view written) {
  std::string text;
  for (const char c : written)
    if (c != '_') text += c;
  bool negative = false;
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    at = 1;
  }
  int exponent = 0;
  const std::size_t e = text.find_first_of("eE", at);
  if (e != std::string::npos) {
    std::size_t digits = e + 1;
    bool below = false;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) below = text[digits++] == '-';
    if (digits == text.size() || text.size() - digits > 4) return std::nullopt;
    for (; digits < text.size(); ++digits) {
      if (text[digits] < '0' || text[digits] > '9') return std::nullopt;
      exponent = 10 * exponent + (text[digits] - '0');
    }
    if (below) exponent = -exponent;
    text.resize(e);
  }
  if (text.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  std::optional<Rational> value = parse_decimal(std::string_view(text).substr(at));
  for (; value && exponent > 0 && *value != Rational(0); --exponent) value = multiply(*value, 10);
  for (; value && exponent < 0 && *value != Rational(0); ++exponent) value = divide(*value, 10);
  if (value && negative) value = subtract(0, *value);
  return value;
}

class Reading {
 public:
  Reading(const Sources& sources, SourceId source) : source_(source), text_(sources[source]) {}

  TomlValue value(const toml::node& node) const {
    TomlValue result;
    result.span = span(node.source());
    if (const toml::table* table = node.as_table()) {
      for (const auto& [key, each] : *table)
        result.members.push_back({std::string(key.str()), span(key.source()), value(each)});
      std::sort(result.members.begin(), result.members.end(),
                [](const TomlMember& a, const TomlMember& b) { return a.span.begin < b.span.begin; });
    } else if (const toml::array* array = node.as_array()) {
      result.kind = TomlValue::Kind::Array;
      for (const toml::node& each : *array) result.items.push_back(value(each));
    } else if (const auto* text = node.as_string()) {
      result.kind = TomlValue::Kind::Text;
      result.text = text->get();
    } else if (const auto* truth = node.as_boolean()) {
      result.kind = TomlValue::Kind::Truth;
      result.truth = truth->get();
    } else if (const auto* whole = node.as_integer()) {
      result.kind = TomlValue::Kind::Number;
      result.text = written(result.span);
      result.number = static_cast<double>(whole->get());
      result.exact = Rational(whole->get());
    } else if (const auto* number = node.as_floating_point()) {
      result.kind = TomlValue::Kind::Number;
      result.text = written(result.span);
      result.number = number->get();
      if (std::isfinite(result.number)) result.exact = exact_value(result.text);
    } else {
      result.kind = TomlValue::Kind::Date;
    }
    return result;
  }

  /// Columns of the parser count characters.
  std::uint32_t offset(const toml::source_position& position) const {
    const std::size_t line = std::min<std::size_t>(std::max<std::size_t>(position.line, 1), text_.lines.size());
    std::uint32_t at = text_.lines[line - 1];
    for (std::uint32_t column = 1; column < position.column && at < text_.text.size(); ++column) {
      ++at;
      while (at < text_.text.size() && (static_cast<unsigned char>(text_.text[at]) & 0xC0) == 0x80) ++at;
    }
    return std::min(at, static_cast<std::uint32_t>(text_.text.size()));
  }

  /// Without the blanks, the comma or the comment that the parser may take with a value.
  Span span(const toml::source_region& region) const {
    const std::uint32_t begin = offset(region.begin);
    std::uint32_t end = std::max(offset(region.end), begin);
    while (end > begin + 1 && (text_.text[end - 1] == ' ' || text_.text[end - 1] == '\t' || text_.text[end - 1] == ',' ||
                               text_.text[end - 1] == '\n' || text_.text[end - 1] == '\r'))
      --end;
    return {source_, begin, end};
  }

 private:
  std::string written(Span span) const { return text_.text.substr(span.begin, span.end - span.begin); }

  SourceId source_;
  const Source& text_;
};

struct Unit {
  std::string_view name;
  double size;
};

constexpr Unit kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
constexpr Unit kBytes[] = {{"B", 1},           {"kB", 1e3},         {"MB", 1e6},         {"GB", 1e9},
                           {"TB", 1e12},       {"PB", 1e15},        {"KiB", 1024},       {"MiB", 1048576},
                           {"GiB", 1073741824}, {"TiB", 1099511627776.0}};
constexpr Unit kByteRates[] = {{"B/s", 1},       {"kB/s", 1e3},      {"MB/s", 1e6},       {"GB/s", 1e9},
                               {"TB/s", 1e12},   {"PB/s", 1e15},     {"Mbit/s", 1.25e5},  {"Gbit/s", 1.25e8},
                               {"Tbit/s", 1.25e11}};
constexpr Unit kFlopRates[] = {
    {"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};

std::vector<Unit> units_of(Quantity quantity) {
  const auto all = [](const auto& units) { return std::vector<Unit>(std::begin(units), std::end(units)); };
  switch (quantity) {
    case Quantity::Time: return all(kTimes);
    case Quantity::Bytes: return all(kBytes);
    case Quantity::BytesPerSecond: return all(kByteRates);
    case Quantity::FlopsPerSecond: return all(kFlopRates);
  }
  return {};
}

std::string_view example_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::Time: return "\"2 us\"";
    case Quantity::Bytes: return "\"80 GB\"";
    case Quantity::BytesPerSecond: return "\"450 GB/s\"";
    case Quantity::FlopsPerSecond: return "\"989 TFLOP/s\"";
  }
  return "";
}

}  // namespace

void refuse(Diagnostics& sink, std::string_view kind, Span span, std::string message, std::string label,
            std::vector<std::string> notes) {
  Diagnostic diagnostic;
  diagnostic.kind = kind;
  diagnostic.message = std::move(message);
  diagnostic.primary = {span, std::move(label)};
  diagnostic.notes = std::move(notes);
  sink.add(std::move(diagnostic));
}

Result<SourceId> read_toml_source(Sources& sources, const std::string& path) {
  return read_used_source(sources, path, kMaxTomlBytes);
}

std::optional<TomlValue> parse_toml(const Sources& sources, SourceId source, Diagnostics& sink) {
  const Reading reading(sources, source);
  try {
    return reading.value(toml::parse(std::string_view(sources[source].text)));
  } catch (const toml::parse_error& error) {
    const std::uint32_t at = reading.offset(error.source().begin);
    refuse(sink, "toml-syntax", {source, at, at}, fmt::format("this is no TOML: {}", error.description()));
    return std::nullopt;
  }
}

std::string_view kind_words(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::Table: return "a table";
    case TomlValue::Kind::Array: return "a list";
    case TomlValue::Kind::Text: return "a text";
    case TomlValue::Kind::Number: return "a number";
    case TomlValue::Kind::Truth: return "true or false";
    case TomlValue::Kind::Date: return "a date or a time of day";
  }
  return "";
}

namespace {

bool has_kind(const TomlMember& member, TomlValue::Kind kind, Diagnostics& sink) {
  if (member.value.kind == kind) return true;
  refuse(sink, "toml-type", member.value.span,
         fmt::format("`{}` takes {}, and this is {}", member.key, kind_words(kind), kind_words(member.value.kind)));
  return false;
}

}  // namespace

const TomlMember* TomlReader::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  for (std::size_t i = 0; i < table_.members.size(); ++i)
    if (table_.members[i].key == key) {
      asked_[i] = true;
      return &table_.members[i];
    }
  return nullptr;
}

const TomlMember* TomlReader::need(std::string_view key) {
  const TomlMember* const found = find(key);
  if (found == nullptr) refuse(sink_, "toml-missing", table_.span, fmt::format("{} needs `{}`", what_, key));
  return found;
}

std::optional<std::string> TomlReader::text(std::string_view key) {
  const TomlMember* const found = find(key);
  if (found == nullptr || !has_kind(*found, TomlValue::Kind::Text, sink_)) return std::nullopt;
  return found->value.text;
}

std::optional<bool> TomlReader::truth(std::string_view key) {
  const TomlMember* const found = find(key);
  if (found == nullptr || !has_kind(*found, TomlValue::Kind::Truth, sink_)) return std::nullopt;
  return found->value.truth;
}

std::optional<double> TomlReader::number(std::string_view key, double least, double most) {
  const TomlMember* const found = find(key);
  if (found == nullptr || !has_kind(*found, TomlValue::Kind::Number, sink_)) return std::nullopt;
  const double value = found->value.number;
  if (std::isfinite(value) && value >= least && value <= most) return value;
  refuse(sink_, "toml-value", found->value.span,
         fmt::format("`{}` is {}; it must be from {} to {}", key, found->value.text, least, most));
  return std::nullopt;
}

std::optional<std::uint32_t> TomlReader::whole(std::string_view key, std::uint32_t least, std::uint32_t most) {
  const TomlMember* const found = find(key);
  if (found == nullptr || !has_kind(*found, TomlValue::Kind::Number, sink_)) return std::nullopt;
  const std::optional<Rational> value = found->value.exact;
  if (value && value->whole() && value->numerator() >= least && value->numerator() <= most)
    return static_cast<std::uint32_t>(value->numerator());
  refuse(sink_, "toml-value", found->value.span,
         fmt::format("`{}` is {}; it must be a whole number from {} to {}", key, found->value.text, least, most));
  return std::nullopt;
}

std::vector<const TomlValue*> TomlReader::tables(std::string_view key) {
  std::vector<const TomlValue*> result;
  const TomlMember* const found = find(key);
  if (found == nullptr) return result;
  if (found->value.kind == TomlValue::Kind::Table) return {&found->value};
  if (!has_kind(*found, TomlValue::Kind::Array, sink_)) return result;
  for (const TomlValue& each : found->value.items) {
    if (each.kind == TomlValue::Kind::Table) {
      result.push_back(&each);
      continue;
    }
    refuse(sink_, "toml-type", each.span,
           fmt::format("`{}` takes tables, and this is {}", key, kind_words(each.kind)));
  }
  return result;
}

void TomlReader::refuse_others() {
  for (std::size_t i = 0; i < table_.members.size(); ++i) {
    if (asked_[i]) continue;
    const TomlMember& member = table_.members[i];
    const std::string_view nearest = nearest_name(member.key, {known_.begin(), known_.end()});
    Diagnostic diagnostic;
    diagnostic.kind = "toml-key";
    diagnostic.message = fmt::format("{} has no key `{}`", what_, member.key);
    diagnostic.primary = {member.span, ""};
    if (!nearest.empty())
      diagnostic.fix = fmt::format("did you mean `{}`?", nearest);
    else
      diagnostic.notes.push_back(fmt::format("its keys are {}", fmt::join(known_, ", ")));
    sink_.add(std::move(diagnostic));
  }
}

std::optional<double> read_quantity(const TomlValue& value, Quantity quantity, const std::string& what,
                                    Diagnostics& sink) {
  const std::vector<Unit> units = units_of(quantity);
  std::vector<std::string_view> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  const auto wrong = [&](std::string message) {
    refuse(sink, value.kind == TomlValue::Kind::Text ? "toml-unit" : "toml-type", value.span, std::move(message), "",
           {fmt::format("its unit is one of {}, as {}", fmt::join(names, ", "), example_of(quantity))});
    return std::nullopt;
  };
  if (value.kind != TomlValue::Kind::Text)
    return wrong(fmt::format("{} takes a text with a number and a unit, and this is {}", what, kind_words(value.kind)));
  const std::string_view text = value.text;
  const std::size_t digits = std::min(text.find_first_not_of("+-0123456789._eE"), text.size());
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  std::string number(text.substr(0, digits));
  // The letter of an exponent may be the first of a unit only behind a blank, and no unit begins with it.
  const std::optional<Rational> exact = exact_value(number);
  if (!exact) return wrong(fmt::format("{} is no number with a unit: `{}`", what, text));
  const auto found = std::find(names.begin(), names.end(), unit);
  if (unit.empty()) return wrong(fmt::format("{} has no unit: `{}`", what, text));
  if (found == names.end()) {
    const std::string_view nearest = nearest_name(unit, names);
    return wrong(fmt::format("{} has the unit `{}`, which is none of its units{}", what, unit,
                             nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest)));
  }
  const double result = exact->to_double() * units[found - names.begin()].size;
  if (result < 0) return wrong(fmt::format("{} is `{}`; it may not be below 0", what, text));
  if (result > (quantity == Quantity::Time ? 1e6 : 1e18)) return wrong(fmt::format("{} is absurd: `{}`", what, text));
  return result;
}

std::optional<double> read_quantity(TomlReader& reader, std::string_view key, Quantity quantity) {
  const TomlMember* const found = reader.find(key);
  if (found == nullptr) return std::nullopt;
  return read_quantity(found->value, quantity, fmt::format("`{}`", key), reader.sink());
}

std::optional<double> need_quantity(TomlReader& reader, std::string_view key, Quantity quantity) {
  const TomlMember* const found = reader.need(key);
  if (found == nullptr) return std::nullopt;
  const std::optional<double> value = read_quantity(found->value, quantity, fmt::format("`{}`", key), reader.sink());
  if (!value || *value > 0) return value;
  refuse(reader.sink(), "toml-value", found->value.span, fmt::format("`{}` is 0; it must be above 0", key));
  return std::nullopt;
}

}  // namespace stave
