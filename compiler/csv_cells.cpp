#include "compiler/csv_cells.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/schedule.h"
#include "compiler/utf8.h"
#include "core/operations.h"

namespace stave {

namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";
/// Kinds of the other format, compute_comms.
constexpr std::array<std::string_view, 7> kCommunication = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                                            "UNSHARD", "RESHARD", "REDUCE_GRAD"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

class CellReader {
 public:
  CellReader(const Sources& sources, SourceId source, Diagnostics& sink) : text_(sources[source].text), sink_(sink) {
    table_.source = source;
    table_.span = {source, 0, static_cast<std::uint32_t>(text_.size())};
    letters_.fill(Cell::kNoLetter);
    for (const OperationInfo& each : kOperations) {
      if (each.pytorch.empty()) continue;
      letters_[static_cast<unsigned char>(each.pytorch[0])] = static_cast<std::uint8_t>(table_.letters.size());
      table_.letters.emplace_back(each.letter);
    }
  }

  TableDecl read() {
    const std::size_t before = sink_.errors();
    if (!guard()) return std::move(table_);
    table_.cells.reserve(static_cast<std::size_t>(std::count(text_.begin(), text_.end(), ',')) +
                         static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) + 1);
    while (at_ < text_.size() && sink_.errors() < before + Diagnostics::kMost && !stop_) row();
    if (sink_.errors() == before) old_letters();
    return std::move(table_);
  }

 private:
  using Offset = std::uint32_t;

  /// What the whole text must be.
  bool guard() {
    if (text_.find('\0') != std::string_view::npos) {
      const auto at = static_cast<Offset>(text_.find('\0'));
      error("not-text", at, at + 1, "this is a binary file: it has a byte of value 0", "");
      return false;
    }
    if (text_.starts_with(kMark)) {
      error("csv-byte-order-mark", 0, 3,
            "the file begins with a byte-order mark, which PyTorch takes for a part of its "
            "first cell",
            "save it as UTF-8 without a mark");
      return false;
    }
    if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      error("empty-file", 0, 0, "there is nothing in this table", "");
      return false;
    }
    return true;
  }

  void row() {
    const auto device = static_cast<std::uint32_t>(table_.rows.size());
    TableRow row;
    row.device = device;
    row.device_span = {table_.source, at_, at_};
    row.first = static_cast<std::uint32_t>(table_.cells.size());
    row_good_ = true;
    column_ = 0;
    if (device >= kMaxDevices) {
      error("csv-cell", at_, at_, "a table has at most " + std::to_string(kMaxDevices) + " rows", "");
      stop_ = true;
      return;
    }
    const Offset begin = at_;
    if (at_line_end()) {
      Offset end = begin;
      while (end > 0 && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
      error("csv-blank-line", begin, begin,
            "line " + std::to_string(device + 1) + " is blank: PyTorch reads it as one more device without ops",
            "remove the line; a device that idles in one step has an empty cell, written \"\"");
    } else {
      cell();
      while (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        cell();
      }
    }
    end_line();
    row.last = static_cast<std::uint32_t>(table_.cells.size());
    table_.rows.push_back(row);
  }

  bool at_line_end() const {
    return at_ == text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
  }

  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  /// One past the cell that `at_` is in.
  Offset cell_end() const {
    Offset end = at_;
    while (end < text_.size() && text_[end] != '\n' && text_[end] != '\r' &&
           (quoted_ ? text_[end] != '"' : text_[end] != ','))
      ++end;
    return end;
  }

  void cell() {
    ++column_;
    quoted_ = at_ < text_.size() && text_[at_] == '"';
    if (quoted_) ++at_;
    skip_blanks();
    begin_ = at_;
    const std::size_t before = table_.cells.size();
    const bool empty = at_ == text_.size() || at_ == cell_end();
    if (!empty && !(text_[at_] == '(' ? compound() : action() && ends_here())) {
      table_.cells.resize(before);
      at_ = cell_end();
    }
    skip_blanks();
    if (!quoted_) return;
    if (at_ < text_.size() && text_[at_] == '"') {
      ++at_;
      quoted_ = false;
      skip_blanks();
      if (at_line_end() || text_[at_] == ',') return;
      wrong(at_, cell_end(), "text after the closing quote", "");
    } else {
      wrong(begin_ - 1, begin_, "a quote that is not closed on its line", "");
    }
    quoted_ = false;
    at_ = cell_end();
  }

  bool ends_here() {
    const Offset end = at_;
    skip_blanks();
    if (at_ == cell_end()) return true;
    const std::string action(text_.substr(begin_, end - begin_));
    if (text_[at_] == '-') return wrong(begin_, cell_end(), "a microbatch is not negative", "");
    if (text_[at_] == ';') return wrong(at_, cell_end(), "cells are separated by commas, not by `;`", "");
    return wrong(at_, cell_end(), "text after the op `" + action + "`, which PyTorch drops without a word", "");
  }

  /// `(0F7;7B3)OVERLAP_F_B`.
  bool compound() {
    ++at_;
    const std::size_t first = table_.cells.size();
    for (;;) {
      skip_blanks();
      begin_ = at_;
      if (!action()) return false;
      table_.cells.back().overlaps_previous = table_.cells.size() > first + 1;
      skip_blanks();
      if (at_ < text_.size() && text_[at_] == ';') {
        ++at_;
        continue;
      }
      break;
    }
    if (at_ == text_.size() || text_[at_] != ')')
      return wrong(at_, cell_end(), "`)` is missing after the ops of a pair", "");
    ++at_;
    const std::string_view kind = letters();
    const auto length = static_cast<Offset>(kind.size());
    if (kind != "OVERLAP_F_B")
      return wrong(at_ - length, std::max(at_, at_ - length + 1), "a pair in brackets is an OVERLAP_F_B",
                   "write `(0F7;7B3)OVERLAP_F_B`");
    if (table_.cells.size() != first + 2) return wrong(begin_, at_, "two ops overlap, no more and no fewer", "");
    return ends_here();
  }

  std::string_view letters() {
    const Offset begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// Digits; none if there are none, or too many for `below`.
  std::optional<std::uint32_t> number(std::uint32_t below) {
    const Offset begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(text_[at_] - '0'), UINT32_MAX);
    if (at_ == begin || value >= below) return std::nullopt;
    return static_cast<std::uint32_t>(value);
  }

  /// `2F0`. False after an error.
  bool action() {
    const Offset begin = at_;
    const std::optional<std::uint32_t> stage = number(kMaxStages);
    if (!stage && at_ > begin) return wrong(begin, at_, "a stage is below " + std::to_string(kMaxStages), "");
    if (!stage) return no_stage(begin);
    const Offset kind_begin = at_;
    std::uint8_t letter = Cell::kNoLetter;
    const bool single = at_ + 1 >= text_.size() || !is_letter(text_[at_ + 1]);
    if (at_ < text_.size() && single) letter = letters_[static_cast<unsigned char>(text_[at_])];
    if (letter == Cell::kNoLetter) return no_letter(begin, kind_begin);
    ++at_;
    const Offset digits = at_;
    const std::optional<std::uint32_t> microbatch = number(kMaxMicrobatches);
    if (!microbatch && at_ > digits)
      return wrong(digits, at_, "a microbatch is below " + std::to_string(kMaxMicrobatches), "");
    if (!microbatch) {
      const std::string op(text_.substr(begin, at_ - begin));
      if (at_ < text_.size() && text_[at_] == '-') return wrong(begin, cell_end(), "a microbatch is not negative", "");
      return wrong(begin, at_, "the microbatch of `" + op + "` is missing", "did you mean `" + op + "0`?");
    }
    if (at_ - begin > UINT8_MAX) return wrong(begin, at_, "a cell of more than 255 characters", "");
    Cell& cell = table_.cells.emplace_back();
    cell.begin = begin;
    cell.length = static_cast<std::uint8_t>(at_ - begin);
    cell.letter = letter;
    cell.stage = *stage;
    cell.microbatch = *microbatch;
    return true;
  }

  bool is_op(std::string_view kind) const {
    return kind.size() == 1 && letters_[static_cast<unsigned char>(kind[0])] != Cell::kNoLetter;
  }

  /// "F, I, W or B".
  std::string known_letters(const std::string& last) const {
    std::string result;
    for (std::size_t i = 0; i < table_.letters.size(); ++i) {
      if (i > 0) result += i + 1 == table_.letters.size() ? " " + last + " " : ", ";
      result += table_.letters[i];
    }
    return result;
  }

  bool no_stage(Offset begin) {
    if (begin < text_.size() && text_[begin] == '-') return wrong(begin, cell_end(), "a stage is not negative", "");
    const std::string kind(letters());
    at_ = begin;
    if (is_op(kind))
      return wrong(begin, cell_end(), "the stage is missing before `" + kind + "`",
                   "write the stage first, as in `2" + kind + "0`");
    return wrong(begin, std::max(cell_end(), begin + 1), "this is no op",
                 "an op is its stage, " + known_letters("or") + ", and its microbatch, as in `2F0`");
  }

  bool no_letter(Offset begin, Offset kind_begin) {
    at_ = kind_begin;
    const std::string kind(letters());
    const Offset kind_end = at_;
    at_ = begin;
    if (kind == "BW") {
      stop_ = true;
      return error("csv-old-letters", kind_begin, kind_end,
                   "`BW` is how PyTorch before late 2024 wrote the full backward",
                   "its `B` was the input gradient: write I for each B, then B for each BW");
    }
    if (std::find(kCommunication.begin(), kCommunication.end(), kind) != kCommunication.end()) {
      stop_ = true;
      return error("csv-communication", begin, cell_end(),
                   "`" + kind +
                       "` belongs to a table with communication (compute_comms), and this version reads "
                       "tables of compute ops alone",
                   "export it as compute_only; stave finds the messages itself");
    }
    if (kind.empty())
      return wrong(begin, std::max(cell_end(), kind_begin + 1),
                   "the op's letter is missing after stage " + std::string(text_.substr(begin, kind_begin - begin)),
                   "the letters are " + known_letters("and"));
    std::string upper = kind;
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    const bool known = is_op(upper);
    return wrong(kind_begin, kind_end, "there is no op `" + kind + "`",
                 known ? "did you mean `" + upper + "`?" : "the letters are " + known_letters("and"));
  }

  /// W beside B, and no I anywhere: the letters of before late 2024, where that B was the input gradient.
  void old_letters() {
    std::array<const Cell*, kOperations.size()> first = {};
    for (const Cell& cell : table_.cells)
      if (first[cell.letter] == nullptr) first[cell.letter] = &cell;
    const auto first_of = [&](char letter) { return first[letters_[static_cast<unsigned char>(letter)]]; };
    if (first_of('I') != nullptr || first_of('W') == nullptr || first_of('B') == nullptr) return;
    const Cell& b = *first_of('B');
    column_ = 0;
    error("csv-old-letters", b.begin, b.begin + b.length,
          "this table has W and B but no I, so its B is the input gradient, as PyTorch wrote it before late 2024",
          "write I for each B");
  }

  /// An error of the cell in hand; one a row is said.
  bool wrong(Offset begin, Offset end, std::string message, std::string fix) {
    if (row_good_) error("csv-cell", begin, end, std::move(message), std::move(fix));
    row_good_ = false;
    return false;
  }

  bool error(std::string_view kind, Offset begin, Offset end, std::string message, std::string fix) {
    Diagnostic diagnostic;
    diagnostic.kind = kind;
    diagnostic.message = std::move(message);
    diagnostic.primary.span = {table_.source, begin, end};
    if (column_ > 0)
      diagnostic.primary.text = "device " + std::to_string(table_.rows.size()) + ", column " + std::to_string(column_);
    diagnostic.fix = std::move(fix);
    sink_.add(std::move(diagnostic));
    return false;
  }

  std::string_view text_;
  Diagnostics& sink_;
  TableDecl table_;
  /// By character: index into the table's letters.
  std::array<std::uint8_t, 256> letters_ = {};
  Offset at_ = 0;
  /// Of the cell in hand, without blanks and quotes.
  Offset begin_ = 0;
  /// From 1; 0 outside the rows.
  std::uint32_t column_ = 0;
  bool quoted_ = false;
  bool row_good_ = true;
  /// The whole file is of another format.
  bool stop_ = false;
};

}  // namespace

TableDecl read_csv_cells(const Sources& sources, SourceId source, Diagnostics& sink) {
  return CellReader(sources, source, sink).read();
}

}  // namespace stave
