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
  /// Brackets open around it; an opening bracket is outside itself, a closing one too.
  std::uint32_t depth = 0;
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
  /// What it could have used, as a message names it ("`=`", "a name"); empty if that is unclear or much.
  std::vector<std::string> expected;
};

/// The word of the language, and not a name of the author's.
bool is_keyword(std::string_view word);

Diagnostic explain(const std::vector<Lexeme>& lexemes, const SyntaxError& error);

/// Whether a declaration may begin at this lexeme, so that parsing can go on there after an error.
bool begins_declaration(const Lexeme& lexeme);

}  // namespace stave
