// The options about what messages contend for: links, buffers, the devices themselves; and the launch of an op.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "compiler/rational.h"
#include "compiler/schedule.h"
#include "core/result.h"
#include "scheduler/contention/rules.h"

namespace stave {

struct ContentionOptions {
  std::string links;
  std::string buffered;
  std::string launch;
  bool blocking = false;
  bool rendezvous = false;

  void add_to(CLI::App& command);
  /// Errors: rules that exclude each other; a size that is none.
  Result<SimulationRules> rules() const;
  /// Of every op, in the unit of the costs; nothing without. Errors: a text that is no number, or one below 0.
  Result<std::optional<Rational>> launch_cost() const;
};

/// Makes every op of the schedule longer by `launch`, an overlapped pair by that of both. Errors: a sum that is no
/// fraction of two 64-bit numbers.
Result<void> add_launch(Schedule& schedule, Rational launch);

}  // namespace stave
