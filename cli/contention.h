// The options about what messages contend for: links, buffers, the devices themselves.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "core/result.h"
#include "scheduler/contention/rules.h"

namespace stave {

struct ContentionOptions {
  std::string links;
  std::string buffered;
  bool blocking = false;
  bool rendezvous = false;

  void add_to(CLI::App& command);
  /// Errors: rules that exclude each other; a size that is none.
  Result<SimulationRules> rules() const;
};

}  // namespace stave
