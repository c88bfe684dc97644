// Verdicts: which competitors fit and run the same as the others, which one wins at each level, and which formula is
// the one that is compared.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/compare/competitor.h"
#include "cli/compare/levels.h"
#include "cli/compare/standard.h"
#include "scheduler/compare/ranking.h"

namespace stave {

struct Limits {
  std::optional<Rational> activations;
  std::optional<Rational> memory;
};

enum class Level : std::uint8_t { Formula, Ideal, Priced };
inline constexpr std::array kLevels = {Level::Formula, Level::Ideal, Level::Priced};
constexpr std::string_view name_of(Level level) {
  return std::array<std::string_view, 3>{"formula", "ideal", "priced"}[static_cast<std::size_t>(level)];
}

/// One competitor with what came of it.
struct Entry {
  std::string label;
  std::string file;
  std::optional<Levels> levels;
  /// Why it is not ranked; empty of one that is.
  std::string reason;
  /// By Level; 0: none.
  std::array<std::uint32_t, 3> rank = {};
};

struct Verdicts {
  /// In the order of the command line.
  std::vector<Entry> entries;
  /// The formulas compared are those that hold where messages are free, since not all that have one have one for the
  /// messages in force.
  bool formula_free = false;

  /// The values of the ranked ones, by entry.
  Values values(Level level) const;
  std::optional<Rational> formula(const Levels& levels) const {
    return formula_free ? levels.formula_free : levels.formula;
  }
  /// Entries that are ranked, best first at the last level; of equals the first.
  std::vector<std::size_t> best_first() const;
};

/// Fills the reasons of those that are beyond a limit, and, if they must run the same as the `standard`, of those that
/// train nothing, or have other devices or microbatches; then the ranks.
Verdicts judge(std::vector<Entry> entries, const std::optional<Standard>& standard, const Limits& limits,
               bool same_size);

}  // namespace stave
