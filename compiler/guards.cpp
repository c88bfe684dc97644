#include "compiler/guards.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "compiler/utf8.h"

namespace stave {

namespace {

bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// Characters that word processors and papers put where the language has others.
struct Lookalike {
  std::string_view found;
  std::string_view meant;
};
constexpr std::array<Lookalike, 14> kLookalikes = {{{"\u2013", "-"},
                                                    {"\u2014", "-"},
                                                    {"\u2212", "-"},
                                                    {"\u00d7", "*"},
                                                    {"\u00b7", "*"},
                                                    {"\u22c5", "*"},
                                                    {"\u00f7", "/"},
                                                    {"\u2264", "<="},
                                                    {"\u2265", ">="},
                                                    {"\u2260", "!="},
                                                    {"\u2026", ".."},
                                                    {"\u201c", "\""},
                                                    {"\u201d", "\""},
                                                    {"\u00a0", " "}}};

char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

/// Words that stand at the beginning of a line only outside all brackets.
constexpr std::array<std::string_view, 12> kOutermost = {"schedule", "use",    "require", "place", "route",  "op",
                                                         "on",       "expect", "cost",    "table", "freeze", "memory"};

class Guard {
 public:
  Guard(const Sources& sources, SourceId source, Diagnostics& sink)
      : text_(sources[source].text), source_(source), sink_(sink) {}

  std::optional<GuardedText> run() {
    // A byte order mark is not worth an error.
    if (text_.starts_with("\xEF\xBB\xBF")) blank_to(3);
    while (at_ < text_.size())
      if (!step()) return std::nullopt;
    if (!open_.empty()) return unclosed();
    if (!any_word_ && !failed_) {
      fail("empty-file", 0, 0, "the file is empty",
           "a schedule begins with `schedule NAME(P = 4, M = 8)`, then says `devices`, `stages`, `microbatches`");
    }
    if (failed_) return std::nullopt;
    return std::move(result_);
  }

 private:
  struct Open {
    char bracket = 0;
    std::uint32_t at = 0;
  };

  /// Reads one token, comment or run of blanks. False if there is no use in going on.
  bool step() {
    const char c = text_[at_];
    if (at_ - skipped_ >= kMaxProgramBytes) {
      fail("file-too-large", at_, at_, "the file has more than 1 MiB of text outside `table` bodies",
           "a schedule is short: loops and functions say the rest, or a `table` holds the order");
      return false;
    }
    if (c == '\n') line_begins_ = true;
    if (is_blank(c)) {
      result_.text += c;
      ++at_;
      return true;
    }
    if (c == '#') return comment();
    if (!is_ascii(c)) return stray();
    const bool first_of_line = std::exchange(line_begins_, false);
    const bool after_table = std::exchange(after_table_word_, false);
    const unsigned prefixes = std::exchange(prefixes_, 0);
    any_word_ = true;
    if (c == '"') return string();
    if (is_word_start(c)) return word(first_of_line, prefixes);
    if (c == '(' || c == '[' || c == '{') return open(c, after_table && c == '{');
    if (c == ')' || c == ']' || c == '}') return close(c);
    if (c == '-' || c == '+') {
      prefixes_ = prefixes + 1;
      if (!few_prefixes()) return false;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return binary();
    result_.text += c;
    ++at_;
    return true;
  }

  bool comment() {
    while (at_ < text_.size() && text_[at_] != '\n')
      if (!inside_text(' ')) return false;
    return true;
  }

  bool string() {
    const std::uint32_t begin = at_;
    result_.text += '"';
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n')
      if (!inside_text('?')) return false;
    if (at_ < text_.size() && text_[at_] == '"') {
      result_.text += '"';
      ++at_;
      return true;
    }
    std::uint32_t end = at_;
    if (end > begin && text_[end - 1] == '\r') --end;
    fail("unclosed-string", begin, end, "the text in quotes does not end on its line", "close it with `\"`");
    return false;
  }

  /// One character of a comment or a string, of which the parser sees `stand_in` alone.
  bool inside_text(char stand_in) {
    const char c = text_[at_];
    if (at_ - skipped_ >= kMaxProgramBytes) {
      fail("file-too-large", at_, at_, "the file has more than 1 MiB of text outside `table` bodies", "");
      return false;
    }
    if (is_ascii(c)) {
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') || c == 0x7F) return binary();
      result_.text += stand_in == ' ' || c == '\t' || c == '\r' ? ' ' : c;
      ++at_;
      return true;
    }
    const std::size_t length = utf8_length(text_, at_);
    if (length == 0) return invalid_utf8();
    result_.text.append(length, stand_in);
    at_ += static_cast<std::uint32_t>(length);
    return true;
  }

  bool word(bool first_of_line, unsigned prefixes) {
    const std::uint32_t begin = at_;
    while (at_ < text_.size() && (is_word_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    result_.text += name;
    after_table_word_ = name == "table";
    if (name == "not") {
      prefixes_ = prefixes + 1;
      if (!few_prefixes()) return false;
    }
    if (first_of_line && !open_.empty() && !hint_ &&
        std::find(kOutermost.begin(), kOutermost.end(), name) != kOutermost.end()) {
      hint_ = Label{{source_, begin, at_}, "`" + std::string(name) + "` begins something new here"};
      hint_bracket_ = open_.back();
    }
    return true;
  }

  bool few_prefixes() {
    if (prefixes_ <= kMaxNesting) return true;
    fail("nested-too-deep", at_, at_ + 1, "more than 200 signs or `not` in a row", "");
    return false;
  }

  bool open(char c, bool is_table) {
    if (open_.size() == kMaxNesting) {
      Diagnostic diagnostic = make("nested-too-deep", at_, at_ + 1, "brackets inside each other more than 200 deep");
      diagnostic.labels.push_back({{source_, open_[0].at, open_[0].at + 1}, "the outermost is opened here"});
      sink_.add(std::move(diagnostic));
      return false;
    }
    open_.push_back({c, at_});
    result_.text += c;
    ++at_;
    return !is_table || table_body();
  }

  /// Leaves out what stands between the braces of a table.
  bool table_body() {
    const std::uint32_t begin = at_;
    bool in_comment = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        in_comment = false;
      } else if (!is_ascii(c)) {
        const std::size_t length = utf8_length(text_, at_);
        if (length == 0) return invalid_utf8();
        at_ += static_cast<std::uint32_t>(length) - 1;
      } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') || c == 0x7F) {
        return binary();
      } else if (c == '#') {
        in_comment = true;
      } else if (c == '}' && !in_comment) {
        break;
      }
    }
    result_.tables.push_back({source_, begin, at_});
    result_.cuts.push_back(static_cast<std::uint32_t>(result_.text.size()));
    skipped_ += at_ - begin;
    return true;
  }

  bool close(char c) {
    if (open_.empty()) {
      fail("unopened-bracket", at_, at_ + 1, std::string("`") + c + "` closes nothing", "");
      return false;
    }
    const Open top = open_.back();
    if (closing(top.bracket) != c) {
      Diagnostic diagnostic = make("unclosed-bracket", top.at, top.at + 1,
                                   std::string("`") + top.bracket + "` is not closed before `" + c + "`");
      diagnostic.primary.text = "opened here";
      diagnostic.labels.push_back(
          {{source_, at_, at_ + 1}, std::string("`") + closing(top.bracket) + "` is needed first"});
      sink_.add(std::move(diagnostic));
      return false;
    }
    open_.pop_back();
    result_.text += c;
    ++at_;
    return true;
  }

  std::optional<GuardedText> unclosed() {
    const Open bracket = hint_ ? hint_bracket_ : open_.back();
    Diagnostic diagnostic =
        make("unclosed-bracket", bracket.at, bracket.at + 1, std::string("`") + bracket.bracket + "` is never closed");
    diagnostic.primary.text = "opened here";
    if (hint_) diagnostic.labels.push_back(*hint_);
    diagnostic.fix = std::string("add `") + closing(bracket.bracket) + "`";
    sink_.add(std::move(diagnostic));
    return std::nullopt;
  }

  /// A character outside comments and strings that is not ASCII.
  bool stray() {
    const std::size_t length = utf8_length(text_, at_);
    if (length == 0) return invalid_utf8();
    const std::string_view found = text_.substr(at_, length);
    Diagnostic diagnostic = make("unexpected-character", at_, at_ + static_cast<std::uint32_t>(length),
                                 "`" + std::string(found) + "` is no character of the language");
    for (const Lookalike& each : kLookalikes)
      if (each.found == found) diagnostic.fix = "write `" + std::string(each.meant) + "`";
    sink_.add(std::move(diagnostic));
    failed_ = true;
    line_begins_ = false;
    blank_to(at_ + static_cast<std::uint32_t>(length));
    // One word in another script is one mistake.
    while (at_ < text_.size() && !is_ascii(text_[at_])) {
      const std::size_t more = utf8_length(text_, at_);
      if (more == 0) return invalid_utf8();
      blank_to(at_ + static_cast<std::uint32_t>(more));
    }
    return true;
  }

  bool binary() {
    constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text_[at_]);
    fail("not-text", at_, at_ + 1,
         std::string("this is no text: it holds the byte 0x") + kHex[byte >> 4] + kHex[byte & 15], "");
    return false;
  }

  bool invalid_utf8() {
    constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text_[at_]);
    std::string fix = "save the file as UTF-8";
    if (at_ == 0 && (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))) fix += ", not as UTF-16";
    fail("invalid-utf8", at_, at_ + 1,
         std::string("the byte 0x") + kHex[byte >> 4] + kHex[byte & 15] + " is no part of a UTF-8 text", fix);
    return false;
  }

  void blank_to(std::uint32_t end) {
    result_.text.append(end - at_, ' ');
    at_ = end;
  }

  Diagnostic make(std::string_view kind, std::uint32_t begin, std::uint32_t end, std::string message) const {
    Diagnostic result;
    result.kind = kind;
    result.message = std::move(message);
    result.primary.span = {source_, begin, end};
    return result;
  }

  void fail(std::string_view kind, std::uint32_t begin, std::uint32_t end, std::string message, std::string fix) {
    Diagnostic diagnostic = make(kind, begin, end, std::move(message));
    diagnostic.fix = std::move(fix);
    sink_.add(std::move(diagnostic));
    failed_ = true;
  }

  std::string_view text_;
  SourceId source_;
  Diagnostics& sink_;
  GuardedText result_;
  std::uint32_t at_ = 0;
  /// Bytes in tables so far.
  std::uint32_t skipped_ = 0;
  std::vector<Open> open_;
  bool any_word_ = false;
  bool failed_ = false;
  bool line_begins_ = true;
  bool after_table_word_ = false;
  /// Signs and `not` in a row that end here.
  unsigned prefixes_ = 0;
  /// Where inside brackets something began that stands outside all, and the innermost bracket open there.
  std::optional<Label> hint_;
  Open hint_bracket_;
};

}  // namespace

std::uint32_t GuardedText::source_offset(std::size_t offset) const {
  std::size_t result = offset;
  for (std::size_t i = 0; i < cuts.size() && cuts[i] <= offset; ++i) result += tables[i].end - tables[i].begin;
  return static_cast<std::uint32_t>(result);
}

std::optional<GuardedText> guard(const Sources& sources, SourceId source, Diagnostics& sink) {
  return Guard(sources, source, sink).run();
}

}  // namespace stave
