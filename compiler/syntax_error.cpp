#include "compiler/syntax_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "compiler/nearest.h"

namespace stave {

namespace {

using Words = std::vector<std::string_view>;

const Words kDeclarations = {"use", "devices", "stages", "microbatches", "slices", "let",     "place",  "route",
                             "op",  "on",      "cost",   "memory",       "freeze", "require", "expect", "table"};
const Words kStatements = {"repeat", "for", "if", "else", "any", "fill", "limit"};
const Words kOthers = {"schedule", "device", "stage",    "microbatch", "of",   "stream", "receives",
                       "from",     "after",  "optional", "in",         "with", "at",     "next",
                       "and",      "or",     "not",      "div",        "mod"};

bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Characters of other languages, and what stands for them here.
struct Foreign {
  std::string_view text;
  std::string_view fix;
};
constexpr std::array<Foreign, 10> kForeign = {{{"%", "write `mod`"},
                                               {"&", "write `and`"},
                                               {"|", "write `or`"},
                                               {"!", "write `not`"},
                                               {";", "leave it out: line ends and semicolons mean nothing"},
                                               {":", "only the rows of a `table` have a colon; a block has braces"},
                                               {"?", "a choice is written `a if c else b`"},
                                               {"^", "there are no powers; multiply"},
                                               {".", "a number begins with a digit, as `0.5`; a range is `0 .. M`"},
                                               {"'", "a text stands in double quotes"}}};

/// Words of other languages.
constexpr std::array<Foreign, 6> kForeignWords = {{{"elif", "write `else if`"},
                                                   {"elsif", "write `else if`"},
                                                   {"elseif", "write `else if`"},
                                                   {"while", "a loop is `repeat n { }` or `for k in list { }`"},
                                                   {"def", "a function is `let f(k) = e`"},
                                                   {"var", "a value is named by `let x = e`"}}};

class Explainer {
 public:
  Explainer(const std::vector<Lexeme>& lexemes, const SyntaxError& error)
      : lexemes_(lexemes), error_(error), at_(lexemes[error.at]), begin_(lexemes[error.begin]) {}

  Diagnostic run() {
    // The first that knows what is wrong.
    if (stands_together() || two_symbols() || foreign_character() || pair_without_parentheses() || one_equals_sign() ||
        choice_without_else() || wrong_first_word() || wrong_statement() || op_without_indices() || misplaced() ||
        reserved_word() || parameter_without_default() || follows_expression())
      return std::move(result_);
    what_is_needed();
    return std::move(result_);
  }

 private:
  const Lexeme& lexeme(std::ptrdiff_t offset) const {
    static const Lexeme none;
    const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(error_.at) + offset;
    return i < 0 || i >= static_cast<std::ptrdiff_t>(lexemes_.size()) ? none : lexemes_[static_cast<std::size_t>(i)];
  }
  std::string_view rule() const { return error_.rules.empty() ? std::string_view() : error_.rules.front(); }
  bool inside(std::string_view name) const { return contains(error_.rules, name); }
  bool expects(std::string_view what) const {
    return std::find(error_.expected.begin(), error_.expected.end(), what) != error_.expected.end();
  }
  bool at_start() const { return error_.at == error_.begin; }

  bool say(std::string_view kind, Span span, std::string message, std::string fix = "", std::string label = "") {
    result_.kind = kind;
    result_.message = std::move(message);
    result_.primary = {span, std::move(label)};
    result_.fix = std::move(fix);
    return true;
  }

  static std::string quoted(const Lexeme& lexeme) {
    if (lexeme.kind == LexemeKind::End) return "the end of the file";
    constexpr std::size_t kMost = 40;
    if (lexeme.text.size() <= kMost) return fmt::format("`{}`", lexeme.text);
    // A token that long is a name, a number or a text in quotes; the last may end inside a character.
    std::size_t cut = kMost;
    while (cut > 0 && (static_cast<unsigned char>(lexeme.text[cut]) & 0xC0) == 0x80) --cut;
    return fmt::format("`{}...`", lexeme.text.substr(0, cut));
  }

  /// `2P`.
  bool stands_together() {
    for (std::size_t i : {error_.at, error_.begin}) {
      if (i == 0 || lexemes_[i].kind != LexemeKind::Name) continue;
      const Lexeme& number = lexemes_[i - 1];
      if (number.kind != LexemeKind::Number || number.span.end != lexemes_[i].span.begin) continue;
      Span both = number.span;
      both.end = lexemes_[i].span.end;
      if (is_exponent(i)) return exponent(both, i);
      return say("syntax", both, fmt::format("`{}{}` is neither a number nor a name", number.text, lexemes_[i].text),
                 fmt::format("to multiply, write `{} * {}`", number.text, lexemes_[i].text));
    }
    return false;
  }

  /// Whether a name right behind a number is the `e3` of `1e3` or the `e` of `1e-3`.
  bool is_exponent(std::size_t i) const {
    const std::string_view name = lexemes_[i].text;
    if (name[0] != 'e' && name[0] != 'E') return false;
    const std::string_view digits = name.substr(1);
    if (digits.empty()) return i + 1 < lexemes_.size() && is_one_of(lexemes_[i + 1].text, {"+", "-"});
    return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  bool exponent(Span span, std::size_t i) {
    std::string text = fmt::format("{}{}", lexemes_[i - 1].text, lexemes_[i].text);
    for (std::size_t k = i + 1; lexemes_[i].text.size() == 1 && k < lexemes_.size() && k <= i + 2; ++k) {
      if (lexemes_[k].span.begin != span.end || (k == i + 2 && lexemes_[k].kind != LexemeKind::Number)) break;
      text += lexemes_[k].text;
      span.end = lexemes_[k].span.end;
    }
    return say("syntax", span, fmt::format("`{}` is no number: there is no exponent notation", text),
               "write its digits out, as `1000` or `0.001`, or a quotient, as `1 / 1000`");
  }

  /// `// a comment`, `/* one */`, `2 ** 3`.
  bool two_symbols() {
    for (std::ptrdiff_t i : {0, -1}) {
      const Lexeme& first = lexeme(i);
      const Lexeme& second = lexeme(i + 1);
      if (first.kind != LexemeKind::Symbol || first.span.end != second.span.begin) continue;
      Span both = first.span;
      both.end = second.span.end;
      if (first.text == "/" && is_one_of(second.text, {"/", "*"}))
        return say("syntax", both, fmt::format("`{}{}` means nothing here", first.text, second.text),
                   "a comment begins with `#`; to divide and round down, write `a div b`");
      if (first.text == "*" && second.text == "*")
        return say("syntax", both, "`**` means nothing here", "there are no powers; multiply");
    }
    return false;
  }

  bool foreign_character() {
    if (at_.kind != LexemeKind::Unknown) return false;
    Span span = at_.span;
    const Lexeme& next = lexeme(1);
    if (next.text == at_.text && next.span.begin == span.end) span.end = next.span.end;
    std::string fix;
    for (const Foreign& each : kForeign)
      if (each.text == at_.text) fix = each.fix;
    const std::string twice(span.end - span.begin, at_.text.empty() ? ' ' : at_.text[0]);
    return say("unexpected-character", span, fmt::format("`{}` means nothing here", twice), std::move(fix));
  }

  bool pair_without_parentheses() {
    if (at_.text != "with" || !is_one_of(declaration().text, {"expect", "require", "let"}) || inside("statement"))
      return false;
    return say("syntax", at_.span, "an overlapped pair in an expression needs parentheses", "write `(F with B)`");
  }

  /// The first lexeme of the declaration that the error is in, as far as that can be told.
  const Lexeme& declaration() const {
    std::size_t i = error_.at;
    while (i > 0 && !(lexemes_[i].depth == 0 && lexemes_[i].first_of_line && contains(kDeclarations, lexemes_[i].text)))
      --i;
    return lexemes_[i];
  }

  bool one_equals_sign() {
    if (at_.text == "=" && !expects("'='")) {
      const bool compares = is_one_of(declaration().text, {"expect", "require"}) || inside("statement");
      if (compares)
        return say("syntax", at_.span, "`=` gives a name its value; two values are compared by `==`", "write `==`");
    }
    if (at_.text == "==" && expects("'='"))
      return say("syntax", at_.span, "`==` compares two values; a name gets its value by `=`", "write `=`");
    return false;
  }

  /// `let x = a if c`.
  bool choice_without_else() {
    if (at_.text != "if" || at_.first_of_line || !at_start() || error_.at == 0) return false;
    return say("syntax", at_.span, "an `if` in an expression needs an `else`", "write `a if c else b`");
  }

  /// A declaration that begins with no word of the language.
  bool wrong_first_word() {
    if (begin_.kind != LexemeKind::Name || inside("costs") || inside("value")) return false;
    const bool calls = error_.begin + 1 < lexemes_.size() && lexemes_[error_.begin + 1].text == "(";
    if (!begin_.first_of_line && error_.begin > 0 && error_.at <= error_.begin + 1)
      return say("syntax", begin_.span,
                 fmt::format("{} cannot follow {} here", quoted(begin_), quoted(lexemes_[error_.begin - 1])));
    if (!calls) {
      if (lexemes_[error_.begin + 1].text == "=")
        return say("unknown-keyword", begin_.span, fmt::format("{} begins no declaration", quoted(begin_)),
                   fmt::format("to name a value, write `let {} = ...`", begin_.text));
      Words known = kDeclarations;
      known.push_back("schedule");
      known.insert(known.end(), kStatements.begin(), kStatements.end());
      return unknown_word(begin_, known, "declaration");
    }
    if ((rule() != "declaration" && rule() != "need") || at_.depth != begin_.depth) return false;
    return say("misplaced", begin_.span, fmt::format("the op {} stands outside `on device`", quoted(begin_)),
               "ops are run inside `on device d { ... }`; here an op may get another need, as `I(s, m) after R(s, m)`");
  }

  bool unknown_word(const Lexeme& word, const Words& known, std::string_view what) {
    std::string fix;
    for (const Foreign& each : kForeignWords)
      if (each.text == word.text) fix = each.fix;
    const std::string_view near = nearest_name(word.text, known);
    if (fix.empty() && !near.empty()) fix = fmt::format("did you mean `{}`?", near);
    return say("unknown-keyword", word.span, fmt::format("{} begins no {}", quoted(word), what), std::move(fix));
  }

  /// A statement that begins with a name which is no op: `repeet 3 { }`.
  bool wrong_statement() {
    const Lexeme& word = lexeme(-1);
    if (rule() != "opName" || word.kind != LexemeKind::Name || !inside("statement") || !expects("'('")) return false;
    if (is_one_of(lexeme(-2).text, {"with", "after", "from", "=", "+", ","})) return false;
    Words known = kStatements;
    known.insert(known.end(), {"let", "with", "at"});
    return unknown_word(word, known, "statement");
  }

  /// `after F`.
  bool op_without_indices() {
    const Lexeme& word = lexeme(-1);
    if (rule() != "opName" || word.kind != LexemeKind::Name || !expects("'('")) return false;
    return say("syntax", word.span, fmt::format("the op {} needs its indices here", quoted(word)),
               fmt::format("write `{}(s, m)`", word.text));
  }

  bool misplaced() {
    if (at_.kind != LexemeKind::Keyword) return false;
    if (at_.text == "schedule" && error_.at > 0)
      return say("misplaced", at_.span, "`schedule` stands once, at the top of the file");
    const bool in_body = inside("body") || inside("item") || (begin_.text == "on" && at_.depth > 0);
    if (at_.text == "else" && (in_body || at_start()))
      return say("misplaced", at_.span, "this `else` has no `if` before it",
                 "write `if c { ... } else { ... }`, or `a if c else b` in an expression");
    if (at_start() && contains(kStatements, at_.text))
      return say("misplaced", at_.span, fmt::format("{} stands outside `on device`", quoted(at_)),
                 "statements stand inside `on device d { ... }`");
    if (at_start()) return unknown_word(at_, kDeclarations, "declaration");
    if (!in_body || rule() == "term" || rule() == "expression") return false;
    if (is_one_of(at_.text, {"any", "fill", "limit"}))
      return say("misplaced", at_.span, fmt::format("{} stands inside another block", quoted(at_)),
                 "`any`, `fill` and `limit` stand directly in an `on device`");
    if (contains(kDeclarations, at_.text) && at_.text != "let")
      return say("misplaced", at_.span, fmt::format("{} stands inside `on device`", quoted(at_)),
                 "close the block before it, or move it out");
    return false;
  }

  bool reserved_word() {
    if (at_.kind != LexemeKind::Keyword) return false;
    const std::string_view before = lexeme(-1).text;
    const bool names = expects("Name") || is_one_of(before, {"let", "for", "op", "schedule", "stream", "receives"});
    const bool lists = is_one_of(before, {"(", ","}) && is_one_of(rule(), {"header", "letDeclaration", "declaration"});
    const bool operand = is_one_of(rule(), {"term", "expression", "argument", "each"}) ||
                         is_one_of(before, {"=", "(", ",", "[", "+", "-", "*", "/", "<", ">", "<=", ">=", "==", "!="});
    // A word that begins the next line is no name: something is missing at the end of this one.
    if (at_.first_of_line && contains(kDeclarations, at_.text)) return false;
    if (!names && !lists && !operand) return false;
    return say("reserved-word", at_.span,
               fmt::format("{} is a word of the language and cannot {}", quoted(at_),
                           names || lists ? "be a name" : "be a value here"),
               names || lists ? "choose another name" : "");
  }

  bool parameter_without_default() {
    if (rule() != "parameter" || !expects("'='")) return false;
    return say("syntax", lexeme(-1).span, fmt::format("the parameter {} needs a default", quoted(lexeme(-1))),
               fmt::format("write `{} = 4`", lexeme(-1).text));
  }

  /// Something between declarations that begins none, on the line of the one before.
  bool follows_expression() {
    if (!at_start() || error_.at == 0) return false;
    if (at_.first_of_line) return say("syntax", at_.span, fmt::format("{} begins no declaration", quoted(at_)));
    return say("syntax", at_.span, fmt::format("{} cannot follow {} here", quoted(at_), quoted(lexeme(-1))));
  }

  void what_is_needed() {
    std::vector<std::string> needed;
    for (const std::string& each : error_.expected) needed.push_back(in_words(each));
    const Lexeme& before = lexeme(-1);
    // The grammar has left the list when it looks for its end.
    if (needed.size() == 1 && (expects("')'") || expects("']'")) && !is_one_of(before.text, {"(", "["}))
      needed.insert(needed.begin(), "`,`");
    const bool operand =
        is_one_of(before.text, {"=",   "(",   ",",  "[",    "+",  "-",  "*",       "/",      "<",
                                ">",   "<=",  ">=", "==",   "!=", "..", "not",     "and",    "or",
                                "div", "mod", "if", "else", "in", "at", "require", "expect", "repeat"});
    constexpr std::size_t kMostListed = 3;
    std::string what;
    if (!needed.empty() && needed.size() <= kMostListed) {
      for (std::size_t i = 0; i < needed.size(); ++i)
        what += (i == 0 ? "" : i + 1 == needed.size() ? " or " : ", ") + needed[i];
    } else if (operand) {
      what = "a value";
    } else if (begin_.text == "on" && at_.depth == begin_.depth && inside("declaration")) {
      what = "`{`";
    }
    if (what.empty()) {
      say("syntax", at_.span,
          before.kind == LexemeKind::End ? fmt::format("{} means nothing here", quoted(at_))
                                         : fmt::format("{} cannot follow {} here", quoted(at_), quoted(before)));
    } else if (at_.kind == LexemeKind::End) {
      say("syntax", at_.span, fmt::format("the file ends where {} is needed", what));
    } else {
      say("syntax", at_.span, fmt::format("{} is needed before {}", what, quoted(at_)));
    }
    // Where the next line has begun, what is missing belongs to the end of the last one.
    if (at_.first_of_line && before.kind != LexemeKind::End && !what.empty())
      result_.labels.push_back({before.span, "it is missing after this"});
  }

  static std::string in_words(const std::string& expected) {
    if (expected.empty()) return "the end";
    if (expected == "Name") return "a name";
    if (expected == "Number") return "a number";
    if (expected == "String") return "a text in quotes";
    return expected.size() > 2 ? "`" + expected.substr(1, expected.size() - 2) + "`" : expected;
  }

  const std::vector<Lexeme>& lexemes_;
  const SyntaxError& error_;
  const Lexeme& at_;
  const Lexeme& begin_;
  Diagnostic result_;
};

}  // namespace

void append_lexeme(std::vector<Lexeme>& lexemes, LexemeKind kind, const Sources& sources, Span span, std::size_t line) {
  Lexeme lexeme;
  lexeme.span = span;
  lexeme.text = sources.text(span);
  lexeme.kind = kind;
  lexeme.line = line;
  const std::string_view word = lexeme.text;
  if (kind == LexemeKind::Symbol &&
      (contains(kDeclarations, word) || contains(kStatements, word) || contains(kOthers, word)))
    lexeme.kind = LexemeKind::Keyword;
  if (!lexemes.empty()) {
    const Lexeme& last = lexemes.back();
    lexeme.depth = last.depth + (is_one_of(last.text, {"(", "[", "{"}) ? 1 : 0);
  }
  if (is_one_of(word, {")", "]", "}"}) && lexeme.depth > 0) --lexeme.depth;
  lexeme.first_of_line = lexemes.empty() || lexemes.back().line != line;
  lexemes.push_back(lexeme);
}

bool begins_declaration(const Lexeme& lexeme) {
  return lexeme.kind == LexemeKind::Name || contains(kDeclarations, lexeme.text);
}

bool is_first_schedule(const std::vector<Lexeme>& lexemes, std::size_t at) {
  const auto first = std::find_if(lexemes.begin(), lexemes.end(),
                                  [](const Lexeme& each) { return each.text == "schedule"; });
  return first == lexemes.begin() + static_cast<std::ptrdiff_t>(at);
}

Diagnostic explain(const std::vector<Lexeme>& lexemes, const SyntaxError& error) {
  return Explainer(lexemes, error).run();
}

}  // namespace stave
