#include "cli/over.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "cli/console.h"

namespace stave {
namespace {

Result<Range> read_range(const std::string& text) {
  const Failure wrong{fmt::format("--over takes NAME=FIRST..LAST, as P=1..12, and not `{}`", text)};
  const Result<NamedText> parts = named_text(text);
  if (!parts) return wrong;
  Range range{parts.value().name, 0, 0};
  const std::string& value = parts.value().value;
  const char* const end = value.data() + value.size();
  const auto [dots, first_error] = std::from_chars(value.data(), end, range.first);
  if (first_error != std::errc() || end - dots < 3 || dots[0] != '.' || dots[1] != '.') return wrong;
  const auto [rest, last_error] = std::from_chars(dots + 2, end, range.last);
  if (last_error != std::errc() || rest != end) return wrong;
  if (range.last < range.first) return Failure{fmt::format("`{}` holds no case: it falls", text)};
  return range;
}

/// Saturates: no grid that is allowed comes near.
std::uint64_t length(const Range& range) {
  const auto difference = static_cast<std::uint64_t>(range.last) - static_cast<std::uint64_t>(range.first);
  return difference == UINT64_MAX ? difference : difference + 1;
}

}  // namespace

Result<std::vector<Range>> read_ranges(const std::vector<std::string>& texts) {
  std::vector<Range> result;
  std::uint64_t cases = 1;
  for (const std::string& text : texts) {
    Result<Range> range = read_range(text);
    if (!range) return range.failure();
    for (const Range& other : result)
      if (other.name == range->name) return Failure{fmt::format("--over gives `{}` twice", range->name)};
    const bool beyond = __builtin_mul_overflow(cases, length(*range), &cases);
    if (beyond || cases > kMaxCases)
      return Failure{fmt::format("the grid of --over has {} cases; at most {} are tried",
                                 beyond ? "more than 10^19" : fmt::to_string(cases), kMaxCases)};
    result.push_back(std::move(*range));
  }
  return result;
}

Result<GridReport> check_grid(const Loaded& loaded, const std::vector<Argument>& arguments,
                              const std::vector<Range>& ranges) {
  for (const Range& range : ranges)
    for (const Argument& argument : arguments)
      if (argument.name == range.name)
        return Failure{fmt::format("parameter `{}` has a value and a range of --over", range.name)};
  GridReport report;
  std::uint64_t all = 1;
  for (const Range& range : ranges) all *= length(range);
  Progress progress("checking");
  std::int64_t smallest_sum = 0;
  for (; report.cases < all; ++report.cases) {
    progress.show(report.cases, all);
    // The number of a case in a base of many digits, the last range the fastest.
    std::vector<Argument> values;
    std::uint64_t rest = report.cases;
    std::int64_t sum = 0;
    for (std::size_t i = ranges.size(); i-- > 0;) {
      const auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(ranges[i].first) + rest % length(ranges[i]));
      rest /= length(ranges[i]);
      values.insert(values.begin(), make_argument(ranges[i].name, value));
      if (__builtin_add_overflow(sum, value, &sum)) sum = INT64_MAX;
    }
    std::vector<Argument> given = arguments;
    given.insert(given.end(), values.begin(), values.end());
    Built built;
    const Result<Outcome> outcome = build(built, loaded, given, Step::Priced);
    if (!outcome) return outcome.failure();
    if (outcome.value() == Outcome::Refused) {
      ++report.refused;
    } else if (outcome.value() != Outcome::Done || built.expects.has_errors()) {
      ++report.failed;
      if (!report.smallest_built || sum < smallest_sum) {
        smallest_sum = sum;
        report.smallest = std::move(values);
        report.smallest_built = std::move(built);
      }
    }
  }
  return report;
}

std::string text_of(const std::vector<Argument>& arguments) {
  std::string result;
  for (const Argument& each : arguments)
    result += fmt::format("{}{}={}", result.empty() ? "" : " ", each.name, each.value().text());
  return result;
}

}  // namespace stave
