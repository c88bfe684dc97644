#include "compiler/syntax_error.h"

#include <algorithm>
#include <array>

namespace stave {

namespace {

constexpr std::array<std::string_view, 42> kKeywords = {
    "after",   "and",  "any",  "at",      "cost",     "device",      "devices", "div",   "else",   "expect", "fill",
    "for",     "freeze", "from", "if",    "in",       "let",         "limit",   "memory", "microbatch", "microbatches", "mod",
    "next",    "not",  "of",   "on",      "op",       "optional",    "or",      "place", "receives", "repeat", "require",
    "route",   "schedule", "slices", "stage", "stages", "stream",    "table",   "use",   "with"};

constexpr std::array<std::string_view, 15> kDeclarations = {"cost",   "devices", "expect",  "freeze",  "let",
                                                            "memory", "microbatches", "on", "op",      "place",
                                                            "require", "route",  "slices",  "stages",  "table"};

}  // namespace

bool is_keyword(std::string_view word) { return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end(); }

bool begins_declaration(const Lexeme& lexeme) {
  if (lexeme.kind == LexemeKind::Name) return true;
  return lexeme.text == "use" ||
         std::find(kDeclarations.begin(), kDeclarations.end(), lexeme.text) != kDeclarations.end();
}

Diagnostic explain(const std::vector<Lexeme>& lexemes, const SyntaxError& error) {
  Diagnostic result;
  const Lexeme& at = lexemes[error.at];
  result.kind = "syntax";
  result.message = at.kind == LexemeKind::End ? "the file ends too early" : "unexpected `" + std::string(at.text) + "`";
  result.primary.span = at.span;
  for (const std::string& each : error.expected) result.fix += (result.fix.empty() ? "expected " : ", ") + each;
  return result;
}

}  // namespace stave
