// From a source to a Schedule: parse, check, expand. The facade of the compiler for those who only want the result.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/arguments.h"
#include "compiler/diagnostics.h"
#include "compiler/schedule.h"
#include "compiler/source.h"
#include "core/result.h"

namespace stave {

struct Code;
class Prices;

/// A file, parsed and checked: to be expanded any number of times.
struct Compiled {
  std::shared_ptr<const Code> code;

  std::string name() const;
  /// Names of its parameters, in the order of the text.
  std::vector<std::string> parameters() const;
  /// The files that it uses, by itself or by way of others; no libraries.
  std::vector<SourceId> used_files() const;
};

/// None if there are errors, which are in `sink`. The files and libraries that it uses are added to `sources`.
std::optional<Compiled> compile(Sources& sources, SourceId source, Diagnostics& sink);

/// The same file with the lines of a `--cost` argument after its own; none if the argument is wrong (a wrong command
/// line, not a wrong schedule). Each argument is a source of its own.
std::optional<Compiled> override_costs(const Compiled& compiled, const Sources& sources, SourceId argument,
                                       Diagnostics& sink);

enum class Outcome : std::uint8_t {
  Done,
  /// A `require` does not hold for these parameters; said in the sink.
  Refused,
  /// The schedule is wrong; said in the sink.
  Rejected,
  /// A parameter that does not exist: see Expanded::failure.
  WrongArgument,
};

struct Expanded {
  Outcome outcome = Outcome::Done;
  std::optional<Schedule> schedule;
  Failure failure;
};

/// The schedule under these parameters, and these prices, if there are any. Cost: under 100 ns an op.
Expanded expand(const Compiled& compiled, const std::vector<Argument>& arguments, Diagnostics& sink,
                const Prices* prices = nullptr);

}  // namespace stave
