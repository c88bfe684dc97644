#include "visualize/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stave {

Ticks last_end(const Table& table, const Timeline& timeline) {
  Ticks result = 0;
  for (std::uint32_t position = 0; position < table.size(); ++position)
    result = std::max(result, timeline.end[position]);
  return result;
}

Durations durations(const Table& table, const Timeline& timeline) {
  Durations result;
  std::vector<Ticks> all;
  all.reserve(table.size());
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const Ticks duration = timeline.end[position] - timeline.start[position];
    if (duration > 0)
      all.push_back(duration);
    else
      ++result.nothing;
  }
  if (all.empty()) return result;
  result.shortest = *std::min_element(all.begin(), all.end());
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  result.median = all[all.size() / 2];
  return result;
}

double axis_step(double least_units) {
  if (!(least_units > 0)) return 1;
  double power = std::pow(10.0, std::floor(std::log10(least_units)));
  for (;; power *= 10)
    for (double factor : {1.0, 2.0, 5.0})
      if (factor * power >= least_units * (1 - 1e-9)) return factor * power;
}

std::vector<double> axis_marks(double begin, double end, double step) {
  std::vector<double> marks;
  const double first = std::ceil(begin / step - 1e-9);
  for (std::size_t i = 0; i < kMostMarks; ++i) {
    const double at = (first + static_cast<double>(i)) * step;
    if (at > end + step * 1e-9 || (!marks.empty() && at <= marks.back())) break;
    marks.push_back(at);
  }
  return marks;
}

std::string in_units(double units, int digits) {
  std::string result = fmt::format("{:.{}f}", units, digits);
  if (result.find('.') != std::string::npos) {
    result.erase(result.find_last_not_of('0') + 1);
    if (result.back() == '.') result.pop_back();
  }
  return result == "-0" ? "0" : result;
}

}  // namespace stave
