// The words for a syntax error: what the author probably meant, told from the tokens around the place where the
// generated parser gave up. Knows nothing of ANTLR.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

enum class LexemeKind : std::uint8_t { Keyword, Name, Number, String, Symbol, Unknown, End };

/// A token of the text.
struct Lexeme {
  LexemeKind kind = LexemeKind::End;
  std::string_view text;
  Span span;
  /// Brackets open around it; a bracket is outside itself.
  std::uint32_t depth = 0;
  std::size_t line = 0;
  bool first_of_line = false;
};

/// Where the parser gave up.
struct SyntaxError {
  /// The declaration it was in: its first lexeme.
  std::size_t begin = 0;
  /// The lexeme that it could not use.
  std::size_t at = 0;
  /// The rules of the grammar it was in, innermost first.
  std::vector<std::string_view> rules;
  /// What it could have used, as the grammar names it ("'='", "Name"; "" is the end); empty if that is unclear.
  std::vector<std::string> expected;
};

/// Appends the token that stands at a place, on a line; a Symbol that is a word becomes a Keyword.
void append_lexeme(std::vector<Lexeme>& lexemes, LexemeKind kind, const Sources& sources, Span span, std::size_t line);

Diagnostic explain(const std::vector<Lexeme>& lexemes, const SyntaxError& error);

/// Whether a declaration may begin at this lexeme, so that parsing can go on there after an error.
bool begins_declaration(const Lexeme& lexeme);
/// Whether a lexeme is the `schedule` that begins a file, but for something wrong before it.
bool is_first_schedule(const std::vector<Lexeme>& lexemes, std::size_t at);

}  // namespace stave
