#include "cli/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/arguments.h"

namespace stave {
namespace {

std::optional<Rational> read_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::optional<Rational> value = exact_number(text);
  return value && negative ? subtract(Rational(0), *value) : value;
}

/// A range, or a number as a range of one.
struct Range {
  Rational first;
  Rational step = 1;
  /// None: more than fit into 64 bits.
  std::optional<std::uint64_t> count = 1;
};

Failure wrong(const std::string& text) {
  return Failure{fmt::format(
      "--over takes NAME=FIRST..LAST, as P=1..12, with a step FIRST..LAST..STEP, or values A,B,C, and not `{}`", text)};
}

Result<Range> read_range(std::string_view item, const std::string& text) {
  std::vector<Rational> numbers;
  for (std::string_view rest = item;;) {
    const std::size_t dots = rest.find("..");
    const std::optional<Rational> number = read_number(rest.substr(0, dots));
    if (!number || numbers.size() == 3) return wrong(text);
    numbers.push_back(*number);
    if (dots == std::string_view::npos) break;
    rest.remove_prefix(dots + 2);
  }
  Range range;
  range.first = numbers[0];
  if (numbers.size() == 1) return range;
  if (numbers.size() == 3) range.step = numbers[2];
  if (range.step <= Rational(0)) return Failure{fmt::format("the step of `{}` must be above 0", text)};
  if (numbers[1] < numbers[0]) return Failure{fmt::format("`{}` holds no case: it falls", text)};
  const std::optional<Rational> length = subtract(numbers[1], numbers[0]);
  const std::optional<Rational> steps = length ? divide(*length, range.step) : std::nullopt;
  range.count = steps ? std::optional(static_cast<std::uint64_t>(floor(*steps)) + 1) : std::nullopt;
  return range;
}

Failure too_many(std::optional<std::uint64_t> cases) {
  return Failure{fmt::format("the grid of --over has {} cases; at most {} are tried",
                             cases ? fmt::to_string(*cases) : "more than 10^18", kMaxCases)};
}

}  // namespace

Result<std::vector<Axis>> read_axes(const std::vector<std::string>& texts) {
  std::vector<Axis> result;
  std::vector<std::vector<Range>> ranges;
  std::uint64_t cases = 1;
  for (const std::string& text : texts) {
    const Result<NamedText> parts = named_text(text);
    if (!parts) return wrong(text);
    for (const Axis& other : result)
      if (other.name == parts.value().name) return Failure{fmt::format("--over gives `{}` twice", other.name)};
    result.push_back({parts.value().name, {}});
    ranges.emplace_back();
    std::uint64_t values = 0;
    for (std::string_view rest = parts.value().value;;) {
      const std::size_t comma = rest.find(',');
      const Result<Range> range = read_range(rest.substr(0, comma), text);
      if (!range) return range.failure();
      ranges.back().push_back(range.value());
      if (!range.value().count || __builtin_add_overflow(values, *range.value().count, &values)) return too_many({});
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (__builtin_mul_overflow(cases, values, &cases)) return too_many({});
  }
  if (cases > kMaxCases) return too_many(cases);
  for (std::size_t a = 0; a < result.size(); ++a) {
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (const Range& range : ranges[a])
      for (std::uint64_t i = 0; i < *range.count; ++i) {
        const std::optional<Rational> far = multiply(range.step, Rational(static_cast<std::int64_t>(i)));
        const std::optional<Rational> value = far ? add(range.first, *far) : std::nullopt;
        if (!value)
          return Failure{fmt::format("--over gives `{}` values that are beyond exact arithmetic", result[a].name)};
        if (!seen.insert({value->numerator(), value->denominator()}).second)
          return Failure{fmt::format("--over gives {}={} twice", result[a].name, value_text(*value))};
        result[a].values.push_back(*value);
      }
  }
  return result;
}

std::uint64_t cases_of(const std::vector<Axis>& axes) {
  std::uint64_t result = 1;
  for (const Axis& axis : axes) result *= axis.values.size();
  return result;
}

std::vector<std::size_t> coordinates(const std::vector<Axis>& axes, std::uint64_t number) {
  std::vector<std::size_t> result(axes.size());
  for (std::size_t i = axes.size(); i-- > 0; number /= axes[i].values.size())
    result[i] = number % axes[i].values.size();
  return result;
}

std::string value_text(Rational value) {
  std::int64_t rest = value.denominator();
  int digits = 0;
  for (; rest % 10 == 0; rest /= 10) ++digits;
  int twos = 0;
  int fives = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (; rest % 5 == 0; rest /= 5) ++fives;
  digits += std::max(twos, fives);
  // Fifteen digits are what a double prints without a slip.
  if (rest != 1 || digits > 6 || value.numerator() > 100000000 || value.numerator() < -100000000) return value.text();
  return digits == 0 ? value.text() : fmt::format("{:.{}f}", value.to_double(), digits);
}

}  // namespace stave
