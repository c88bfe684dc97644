// The ranks of `stave run`: whether this process starts them, is one of them, or has all devices itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/run/arguments.h"
#include "core/result.h"
#include "executor/ranks/join.h"

namespace stave {

/// What this process is.
struct Role {
  TransportKind transport = TransportKind::Inproc;
  std::optional<RankPlace> place;
  /// It starts the ranks, and is none.
  bool launches = false;
  /// One process of several; else all devices are here.
  bool is_rank = false;
};

/// Errors: options that do not fit each other; variables of a launcher that contradict themselves.
Result<Role> find_role(const RunArguments& arguments);

/// This process's own.
std::vector<std::string> command_line();

/// Starts the ranks that --ranks asks for, with this process's own command line, and waits for them.
Exit launch(std::uint32_t ranks);

/// Makes this process a rank. `what` is what all must have alike.
Result<std::unique_ptr<JoinedRank>> join(const Role& role, const RunArguments& arguments, const std::string& what);

}  // namespace stave
