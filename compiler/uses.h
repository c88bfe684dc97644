// The files and libraries that a schedule brings in with `use`: found, read and parsed.
// What their declarations mean beside those of the schedule is check.h's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ast.h"
#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

/// Most files that a schedule may bring in, and most bytes of each.
inline constexpr std::size_t kMaxUsedFiles = 32;
inline constexpr std::size_t kMaxUsedBytes = std::size_t(1) << 24;

struct BroughtIn {
  Ast ast;
  /// The `use` that brought it in first; not valid for training where no `use NAME` stands.
  Span use;
  /// "training" or "inference"; empty for a file.
  std::string library;
};

/// The libraries, then the files that `file` uses, by itself or by way of others: each once, after those that it uses
/// itself. `use training` is understood where no `use NAME` stands in any of them. A path is that from the folder of the
/// file that says it. In `sink`, what is said of a file that is brought in says from now on where it is used.
/// None after errors: a library of another name, a file that cannot be read or parsed, one that uses itself.
std::optional<std::vector<BroughtIn>> bring_in(Sources& sources, const Ast& file, Diagnostics& sink);

/// The library of this name, which must be one.
BroughtIn bring_in_library(Sources& sources, const std::string& name);

}  // namespace stave
