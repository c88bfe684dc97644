#include "compiler/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace stave {

namespace {

constexpr std::size_t kMostLetters = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Slips in halves: a letter in the other case is half a slip.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kMostLetters + 1>, 3> rows = {};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = 2 * j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i - 1) % 3];
    const auto& before = rows[(i + 1) % 3];
    row[0] = 2 * i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t wrong = a[i - 1] == b[j - 1] ? 0 : lower(a[i - 1]) == lower(b[j - 1]) ? 1 : 2;
      row[j] = std::min({above[j] + 2, row[j - 1] + 2, above[j - 1] + wrong});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 2);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.empty() || name.size() > kMostLetters) return {};
  // In halves of a slip. One letter of a name of one or two would make a name of its own.
  const std::size_t most = name.size() < 3 ? 1 : 2 * std::max<std::size_t>(1, name.size() / 3);
  std::string_view best;
  std::size_t least = most + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kMostLetters) continue;
    const std::size_t more = std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    if (2 * more >= least) continue;
    const std::size_t slips = distance(name, candidate);
    if (slips < least) {
      least = slips;
      best = candidate;
    }
  }
  return best;
}

}  // namespace stave
