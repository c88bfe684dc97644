// Arguments: the part of a command line that names schedules, their parameters and their costs.
// Reading the files is pipeline.h; what a value means is the language's.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/contention.h"
#include "compiler/rational.h"
#include "core/result.h"

namespace stave {

/// One `NAME=VALUE`, as written.
struct NamedText {
  std::string name;
  std::string value;
};

/// A file, as `find_schedule` has it, with the parameters that follow it, and those of `-D`, which hold for every file and come first.
struct ScheduleArgument {
  std::string file;
  std::vector<NamedText> parameters;
};

/// What every command that takes schedules has.
struct ScheduleOptions {
  std::vector<std::string> words;
  std::vector<std::string> definitions;
  std::string cost;
  /// A costs file; a cluster and a model, which come together; and which device sits where on it.
  std::string costs;
  std::string cluster;
  std::string model;
  std::string map;
  /// Of commands that price with contention.
  ContentionOptions contention;

  void add_to(CLI::App& command);
};

/// Places are below this.
inline constexpr std::uint32_t kMostPlaces = 1u << 20;

/// The places of `--map`: numbers and ranges, the last of a range not included. Errors: no such list, a place twice.
Result<std::vector<std::uint32_t>> read_map(const std::string& text);

/// The parameters of `-D`. Errors: a word that is no NAME=VALUE, a name given twice.
Result<std::vector<NamedText>> common_parameters(const ScheduleOptions& options);

/// Errors: no file, no such name in the library, a second file where only one is taken, a name given twice (also once by
/// `-D`), a word that is no NAME=VALUE.
Result<std::vector<ScheduleArgument>> schedule_arguments(const ScheduleOptions& options, bool several);

/// The check of an option that takes a number: finite, and from `least` to `most`. CLI11's own lets through what is no
/// number.
CLI::Validator between(double least, double most);

/// The same of an option that takes a whole number, in digits. CLI11's own takes one that is too large for the largest.
CLI::Validator whole_between(std::uint64_t least, std::uint64_t most);

/// The exact value of `2`, `0.25` or `1/3`. None of anything else, or if it does not fit.
std::optional<Rational> exact_number(std::string_view text);

/// Takes `NAME=VALUE` apart. Errors: no name, no value.
Result<NamedText> named_text(const std::string& word);

}  // namespace stave
