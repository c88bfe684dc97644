// Diagnostics as text: snippets of the source for people, one line each for editors and logs, JSON for programs.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/diagnostics.h"
#include "compiler/source.h"

#include <nlohmann/json_fwd.hpp>

namespace stave {

struct RenderStyle {
  /// With ANSI colours; they repeat what the text says.
  bool colour = false;
  /// Columns of the terminal; longer lines are cut around what they show. At least 40 are used.
  std::uint32_t width = 100;
};

/// Each diagnostic with the lines it speaks of, marked `^^^` where it is wrong and `---` at its other places. A tab is
/// as wide as up to 4 blanks, a control character is shown as `?`. ASCII but for what the source holds. Ends with a
/// count if some were dropped. Empty without diagnostics.
std::string render_snippets(const Sources& sources, const Diagnostics& diagnostics, const RenderStyle& style = {});

/// Each diagnostic as one line: `file:line:column: error: message [kind]`.
std::string render_lines(const Sources& sources, const Diagnostics& diagnostics);

/// Array of objects `{severity, kind, message, file, line, column, end_line, end_column, label, labels, notes, fix}`;
/// what a diagnostic does not have is left out. Lines and columns count from 1, columns in characters; the end is the
/// column behind the last one.
nlohmann::ordered_json diagnostics_json(const Sources& sources, const Diagnostics& diagnostics);

}  // namespace stave
