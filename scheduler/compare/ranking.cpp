#include "scheduler/compare/ranking.h"

#include <algorithm>
#include <tuple>

namespace stave {

std::vector<std::uint32_t> ranks_of(const Values& values) {
  std::vector<Rational> sorted;
  for (const std::optional<Rational>& value : values)
    if (value) sorted.push_back(*value);
  std::sort(sorted.begin(), sorted.end(), [](Rational a, Rational b) { return a < b; });
  std::vector<std::uint32_t> result;
  for (const std::optional<Rational>& value : values) {
    if (!value) {
      result.push_back(0);
      continue;
    }
    const auto first =
        std::lower_bound(sorted.begin(), sorted.end(), *value, [](Rational a, Rational b) { return a < b; });
    result.push_back(static_cast<std::uint32_t>(first - sorted.begin()) + 1);
  }
  return result;
}

std::vector<Turn> turns_between(const Values& before, const Values& after) {
  std::vector<Turn> result;
  for (std::size_t a = 0; a < before.size(); ++a)
    for (std::size_t b = 0; b < before.size(); ++b)
      if (before[a] && before[b] && after[a] && after[b] && *after[a] < *after[b] && *before[a] >= *before[b])
        result.push_back({a, b, *before[a] == *before[b]});
  std::stable_sort(result.begin(), result.end(), [&](const Turn& a, const Turn& b) {
    if (*after[a.winner] != *after[b.winner]) return *after[a.winner] < *after[b.winner];
    return *after[a.loser] > *after[b.loser];
  });
  return result;
}

std::vector<Crossing> crossings_of(const std::vector<Values>& points) {
  std::vector<Crossing> result;
  const std::size_t n = points.empty() ? 0 : points[0].size();
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) {
      // The last point at which one was ahead, and which.
      std::optional<std::pair<std::size_t, bool>> ahead;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const Values& at = points[i];
        if (!at[a] || !at[b] || *at[a] == *at[b]) continue;
        const bool a_leads = *at[a] < *at[b];
        if (ahead && ahead->second != a_leads) result.push_back({a_leads ? a : b, a_leads ? b : a, ahead->first, i});
        ahead = {i, a_leads};
      }
    }
  std::sort(result.begin(), result.end(), [](const Crossing& x, const Crossing& y) {
    return std::tie(x.to, x.winner, x.loser) < std::tie(y.to, y.winner, y.loser);
  });
  return result;
}

}  // namespace stave
