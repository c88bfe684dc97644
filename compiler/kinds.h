// The kinds of diagnostics: the one list of their stable names, each with what it means in one line.
// A kind is shown in brackets behind a message; `stave explain KIND` shows a file that fails so, and its repair.
#pragma once

#include <string_view>

namespace stave {

struct Kind {
  std::string_view name;
  std::string_view meaning;
};

/// Sorted by the step that finds them, then by name.
inline constexpr Kind kKinds[] = {
    // Reading the text.
    {"empty-file", "there is nothing in the file but blanks and comments"},
    {"file-too-large", "more than 1 MiB of text outside `table` bodies"},
    {"invalid-utf8", "bytes that are no UTF-8 text"},
    {"misplaced", "something that is right in another place of a file"},
    {"nested-too-deep", "brackets or expressions inside each other more than 200 deep"},
    {"not-text", "a binary file"},
    {"number-too-large", "a number that does not fit into 64 bits"},
    {"reserved-word", "a word of the language where a name of your own is needed"},
    {"syntax", "text that the grammar does not allow"},
    {"table-cell", "a cell of a `table` that names no op"},
    {"table-row", "a row of a `table` that does not begin with a device and a colon"},
    {"unclosed-bracket", "a bracket that is never closed, or closed by one of another shape"},
    {"unclosed-string", "a text in quotes that does not end on its line"},
    {"unexpected-character", "a character that the language does not use"},
    {"unknown-keyword", "a word that begins no statement or declaration"},
    {"unopened-bracket", "a closing bracket that closes nothing"},
    // Ordering.
    {"cost-overflow", "costs that cannot be counted in whole ticks"},
    {"limit-impossible", "a `limit` that no order of the device can keep"},
    {"limit-stops-list", "a list that waits for its own `limit` for ever"},
};

constexpr bool known_kind(std::string_view name) {
  for (const Kind& kind : kKinds)
    if (kind.name == name) return true;
  return false;
}

}  // namespace stave
