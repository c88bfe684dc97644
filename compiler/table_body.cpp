#include "compiler/table_body.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stave {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class TableReader {
 public:
  TableReader(const Sources& sources, Span body, Ast& ast, TableDecl& into, Diagnostics& sink)
      : text_(sources[body.source].text),
        source_(body.source),
        at_(body.begin),
        end_(body.end),
        ast_(ast),
        into_(into),
        sink_(sink) {}

  void run() {
    reserve();
    while (errors_ < Diagnostics::kMost) {
      skip_blanks();
      if (at_ == end_) break;
      if (!row_begins() && !cell()) skip_cell();
    }
    finish_row();
  }

 private:
  /// One pass ahead, so that the cells are allocated once.
  void reserve() {
    std::size_t cells = 0;
    for (std::uint32_t i = at_; i < end_; ++i)
      if (!is_blank(text_[i]) && text_[i] != '.' && (i == at_ || is_blank(text_[i - 1]))) ++cells;
    into_.cells.reserve(cells);
  }

  void skip_blanks() {
    while (at_ < end_) {
      if (text_[at_] == '#') {
        while (at_ < end_ && text_[at_] != '\n') ++at_;
      } else if (is_blank(text_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }

  /// Reads `3:`. False if no row begins here; then nothing is read.
  bool row_begins() {
    std::uint32_t i = at_;
    while (i < end_ && is_digit(text_[i])) ++i;
    const std::uint32_t digits_end = i;
    if (digits_end == at_) return row_missing();
    while (i < end_ && is_blank(text_[i])) ++i;
    if (i < end_ && text_[i] == ':') {
      const Span span = {source_, at_, digits_end};
      finish_row();
      const std::optional<std::uint32_t> device = number();
      at_ = i + 1;
      in_row_ = true;
      TableRow row;
      row.device = device.value_or(0);
      row.device_span = span;
      row.first = static_cast<std::uint32_t>(into_.cells.size());
      into_.rows.push_back(row);
      return true;
    }
    // `0 F0`: a number alone is no cell, so its colon is missing.
    if (digits_end < end_ && !is_blank(text_[digits_end])) return row_missing();
    error("table-row", at_, digits_end,
          "`:` is missing after device " + std::string(text_.substr(at_, digits_end - at_)),
          "a row is a device, a colon and its ops: `0: F0 F1 B0 B1`");
    at_ = digits_end;
    in_row_ = true;
    return true;
  }

  bool row_missing() {
    if (in_row_) return false;
    error("table-row", at_, cell_end(), "a row begins with its device and a colon",
          "write the device first: `0: F0 F1 B0 B1`");
    in_row_ = true;
    return false;
  }

  void finish_row() {
    if (!into_.rows.empty()) into_.rows.back().last = static_cast<std::uint32_t>(into_.cells.size());
  }

  /// Reads `.`, `F0`, `2F0`, `0F7+3B5`, `Decode(0, 1, 2)`. False after an error.
  bool cell() {
    if (text_[at_] == '.') {
      while (at_ < end_ && text_[at_] == '.') ++at_;
      return ends_here();
    }
    const std::size_t before = into_.cells.size();
    const std::uint32_t begin = at_;
    bool good = op(false);
    if (good && at_ < end_ && text_[at_] == '+') {
      ++at_;
      good = op(true);
      if (good && at_ < end_ && text_[at_] == '+') {
        error("table-cell", begin, cell_end(), "at most two ops overlap", "");
        good = false;
      }
    }
    good = good && ends_here();
    if (!good) into_.cells.resize(before);
    return good;
  }

  bool ends_here() {
    if (at_ == end_ || is_blank(text_[at_]) || text_[at_] == '#') return true;
    error("table-cell", at_, cell_end(), "`" + shown(at_, cell_end()) + "` is too much here",
          "cells are separated by blanks: `F0 2F0 0F7+3B5 .`");
    return false;
  }

  bool op(bool overlaps) {
    Cell cell;
    cell.begin = at_;
    cell.overlaps_previous = overlaps;
    if (at_ < end_ && is_digit(text_[at_])) {
      const std::optional<std::uint32_t> stage = number();
      if (!stage) return false;
      cell.stage = *stage;
    }
    const std::uint32_t letters = at_;
    while (at_ < end_ && is_letter(text_[at_])) ++at_;
    if (letters == at_) {
      const std::string found = shown(cell.begin, cell_end());
      if (overlaps && found.empty())
        error("table-cell", cell.begin - 1, cell.begin, "an op is missing behind `+`", "");
      else
        error("table-cell", cell.begin, cell_end(), "`" + found + "` names no op",
              "a cell is `F0`, `2F0` with the stage first, `0F7+3B5` for two that overlap, or `.`");
      return false;
    }
    std::uint32_t name_end = at_;
    // A name with digits inside is known by its bracket: `K2(0, 1)`.
    std::uint32_t bracket = at_;
    while (bracket < end_ && (is_letter(text_[bracket]) || is_digit(text_[bracket]))) ++bracket;
    if (bracket < end_ && text_[bracket] == '(' && cell.stage == Cell::kNone) {
      name_end = bracket;
      if (!call(cell, name_end)) return false;
    } else {
      const std::optional<std::uint8_t> letter = letter_number(text_.substr(letters, name_end - letters));
      if (!letter) {
        error("table-cell", letters, name_end, "a table has at most 255 different letters", "");
        return false;
      }
      cell.letter = *letter;
      if (at_ < end_ && is_digit(text_[at_])) {
        const std::optional<std::uint32_t> microbatch = number();
        if (!microbatch) return false;
        cell.microbatch = *microbatch;
      }
    }
    if (at_ - cell.begin > UINT8_MAX) {
      error("table-cell", cell.begin, at_, "a cell has at most 255 characters", "");
      return false;
    }
    cell.length = static_cast<std::uint8_t>(at_ - cell.begin);
    into_.cells.push_back(cell);
    return true;
  }

  /// Reads `(0, 1, 2)` after a name that begins where the cell does.
  bool call(Cell& cell, std::uint32_t name_end) {
    Expr result;
    result.kind = ExprKind::Call;
    result.name = {std::string(text_.substr(cell.begin, name_end - cell.begin)), {source_, cell.begin, name_end}};
    at_ = name_end + 1;
    for (bool first = true;; first = false) {
      skip_blanks();
      if (first && at_ < end_ && text_[at_] == ')') break;
      const std::uint32_t begin = at_;
      if (at_ == end_ || !is_digit(text_[at_])) {
        error("table-cell", at_, at_ + 1, "a whole number is needed here",
              "other indices are written `" + result.name.name + "(0, 1, 2)`");
        return false;
      }
      const std::optional<std::uint32_t> value = number();
      if (!value) return false;
      Expr index;
      index.value = Rational(*value);
      index.span = {source_, begin, at_};
      result.operands.push_back(ast_.exprs.push_back(std::move(index)));
      skip_blanks();
      if (at_ < end_ && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < end_ && text_[at_] == ')') break;
      error("table-cell", at_, at_ + 1, "`,` or `)` is needed here", "");
      return false;
    }
    ++at_;
    result.span = {source_, cell.begin, at_};
    cell.call = static_cast<std::uint32_t>(into_.calls.size());
    into_.calls.push_back(ast_.exprs.push_back(std::move(result)));
    return true;
  }

  /// Reads digits. None, with an error, if they are too many.
  std::optional<std::uint32_t> number() {
    const std::uint32_t begin = at_;
    std::uint64_t value = 0;
    while (at_ < end_ && is_digit(text_[at_])) {
      if (value < Cell::kNone) value = value * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
      ++at_;
    }
    if (value < Cell::kNone) return static_cast<std::uint32_t>(value);
    error("number-too-large", begin, at_, "`" + shown(begin, at_) + "` is too large for an index", "");
    return std::nullopt;
  }

  std::optional<std::uint8_t> letter_number(std::string_view letter) {
    for (std::size_t i = 0; i < into_.letters.size(); ++i)
      if (into_.letters[i] == letter) return static_cast<std::uint8_t>(i);
    if (into_.letters.size() == Cell::kNoLetter) return std::nullopt;
    into_.letters.emplace_back(letter);
    return static_cast<std::uint8_t>(into_.letters.size() - 1);
  }

  std::uint32_t cell_end() const {
    std::uint32_t i = at_;
    while (i < end_ && !is_blank(text_[i]) && text_[i] != '#') ++i;
    return i;
  }

  void skip_cell() { at_ = cell_end(); }

  /// Text for a message, cut where it would be long.
  std::string shown(std::uint32_t begin, std::uint32_t end) const {
    constexpr std::uint32_t kMost = 40;
    if (end - begin <= kMost) return std::string(text_.substr(begin, end - begin));
    std::uint32_t cut = begin + kMost;
    while (cut > begin && (static_cast<unsigned char>(text_[cut]) & 0xC0) == 0x80) --cut;
    return std::string(text_.substr(begin, cut - begin)) + "...";
  }

  void error(std::string_view kind, std::uint32_t begin, std::uint32_t end, std::string message, std::string fix) {
    ++errors_;
    Diagnostic diagnostic;
    diagnostic.kind = kind;
    diagnostic.message = std::move(message);
    diagnostic.primary.span = {source_, begin, end};
    diagnostic.fix = std::move(fix);
    sink_.add(std::move(diagnostic));
  }

  std::string_view text_;
  SourceId source_;
  std::uint32_t at_ = 0;
  std::uint32_t end_ = 0;
  Ast& ast_;
  TableDecl& into_;
  Diagnostics& sink_;
  bool in_row_ = false;
  std::size_t errors_ = 0;
};

}  // namespace

void read_table_body(const Sources& sources, Span body, Ast& ast, TableDecl& into, Diagnostics& sink) {
  TableReader(sources, body, ast, into, sink).run();
}

}  // namespace stave
