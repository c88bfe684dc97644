// Levels: one competitor priced at the three levels of the tabular abstraction (Barley et al., arXiv:2605.24006): by
// its closed formula, as a table whose messages are free, and with the messages that are in force.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/compare/competitor.h"
#include "cli/compare/standard.h"
#include "compiler/rational.h"
#include "scheduler/compare/account.h"

namespace stave {

/// Times in the unit of the costs; exact.
struct Levels {
  /// "zb_h1 P=4 M=8", without lists.
  std::string title;
  std::string unit;
  std::uint32_t devices = 0;
  std::uint32_t microbatches = 0;
  /// Of its forwards of a training, before costs are scaled; none if it has none.
  std::optional<Work> work;
  Share share;
  /// What the first `expect makespan == e` says that applies under the costs in force, and with all messages free.
  std::optional<Rational> formula;
  std::optional<Rational> formula_free;
  Rational ideal;
  Rational priced;
  Rational span;
  /// Of the priced one.
  double bubble = 0;
  double span_bubble = 0;
  std::optional<double> utilisation;
  /// The greatest of any device; of a share that is not 1, in parts of what a stage of the standard holds.
  Rational peak_activations;
  std::optional<Rational> peak_memory;
  /// Times are those of a costs file or of a model on a cluster; of the latter memory is in bytes.
  bool priced_by_file = false;
  bool bytes = false;
  std::uint32_t messages = 0;
  /// The greatest of any stage.
  std::uint32_t staleness = 0;
  /// It leaves out a part of its weight gradients; and the share of all stages that a microbatch goes through, on average.
  bool freezes = false;
  double visited = 1;
  Account account;
};

/// A memory as it is printed: "4.5", "80 GB"; "-" for none.
std::string memory_text(const Levels& levels, const std::optional<Rational>& size);

/// What came of one competitor.
struct Priced {
  Outcome outcome = Outcome::Done;
  /// Why there are no levels: of a `require` its text, else what is wrong, in a line.
  std::string reason;
  std::optional<Levels> levels;
};

/// Prices it with its own arguments. What is wrong with it, and which of its `expect` lines are false, is printed
/// unless it is to be `silent`. Errors: a parameter that does not exist; costs of --cost that cannot be.
Result<Priced> price(const Competitor& competitor, const std::optional<Standard>& standard, bool silent);

}  // namespace stave
