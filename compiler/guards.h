// Guards: what a text must be before the generated parser sees it, since that takes 270 bytes for each one it reads and
// may overflow the stack. They find the bodies of tables, which have a reader of their own (table_body.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

/// Most bytes of a file outside `table` bodies.
inline constexpr std::size_t kMaxProgramBytes = std::size_t(1) << 20;
/// Most brackets inside each other, and most expressions.
inline constexpr std::size_t kMaxNesting = 200;

/// A text that is safe to parse: ASCII, brackets balanced, comments blank, bodies of tables left out.
struct GuardedText {
  std::string text;
  /// Bodies of the tables, without their braces, in order.
  std::vector<Span> tables;
  /// Where in `text` each body was left out.
  std::vector<std::uint32_t> cuts;

  /// Byte of the source for a byte of `text`. Cost: O(tables).
  std::uint32_t source_offset(std::size_t offset) const;
};

/// Checks a text: not empty, no binary, UTF-8, at most kMaxProgramBytes outside tables, brackets balanced and at most
/// kMaxNesting deep, strings closed on their line, nothing but ASCII outside comments and strings.
/// Stops at the first error but for stray characters. Cost: O(bytes); one that is too large outside tables is left
/// there.
std::optional<GuardedText> guard(const Sources& sources, SourceId source, Diagnostics& sink);

}  // namespace stave
