#include "cli/over.h"

#include <fmt/format.h>

#include <utility>

#include "cli/console.h"

namespace stave {

Result<GridReport> check_grid(const Loaded& loaded, const std::vector<Argument>& arguments,
                              const std::vector<Axis>& axes) {
  for (const Axis& axis : axes)
    for (const Argument& argument : arguments)
      if (argument.name == axis.name)
        return Failure{fmt::format("parameter `{}` has a value and a range of --over", axis.name)};
  GridReport report;
  const std::uint64_t all = cases_of(axes);
  Progress progress("checking");
  double smallest_sum = 0;
  for (; report.cases < all; ++report.cases) {
    progress.show(report.cases, all);
    std::vector<Argument> values;
    double sum = 0;
    const std::vector<std::size_t> at = coordinates(axes, report.cases);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      values.push_back(make_argument(axes[i].name, axes[i].values[at[i]]));
      sum += values.back().number.to_double();
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
