// Examples: the golden files that show a kind of diagnostic, built into the program.
#pragma once

#include <span>
#include <string_view>

namespace stave {

struct Example {
  /// "fail_op_twice.sched".
  std::string_view name;
  /// The whole file: see golden_file.h.
  std::string_view text;
};

/// Sorted by name. Made at build time.
std::span<const Example> examples();

}  // namespace stave
