#include "compiler/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/utf8.h"

namespace stave {

namespace {

constexpr std::uint32_t kTab = 4;
constexpr std::uint32_t kLeastWidth = 40;

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;33m";
constexpr std::string_view kBlue = "\x1b[1;34m";

std::string_view word(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Note:
      return "note";
  }
  return "";
}

std::string_view colour_of(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return kRed;
    case Severity::Warning:
      return kYellow;
    case Severity::Note:
      return kBlue;
  }
  return "";
}

std::string one_line(std::string_view text) {
  std::string result = valid_utf8(text);
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return result;
}

/// A label on one line of a source: bytes of that line.
struct Mark {
  bool primary = false;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::string text;
};

/// A line, or the part of a long one that is shown, with its marks.
struct Line {
  SourceId source;
  std::uint32_t number = 0;
  std::vector<Mark> marks;
};

/// A line as it is shown: text, and the column of every byte between `begin` and `end`.
struct Window {
  std::string text;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  /// Shape: one entry a byte, and one for the end.
  std::vector<std::uint32_t> columns;

  std::uint32_t column(std::uint32_t byte) const { return columns[std::clamp(byte, begin, end) - begin]; }
};

class Snippets {
 public:
  Snippets(const Sources& sources, const RenderStyle& style)
      : sources_(sources), style_(style), width_(std::max(style.width, kLeastWidth)) {}

  void add(const Diagnostic& diagnostic) {
    std::vector<Line> lines = lines_of(diagnostic);
    std::uint32_t largest = 0;
    for (const Line& line : lines) largest = std::max(largest, line.number);
    gutter_ = fmt::formatted_size("{}", largest);

    out_ += paint(word(diagnostic.severity), colour_of(diagnostic.severity));
    out_ += paint(": " + one_line(diagnostic.message), kBold);
    out_ += fmt::format(" [{}]\n", diagnostic.kind);
    if (diagnostic.primary.span.valid()) snippet(diagnostic, std::move(lines));
    for (const std::string& each : diagnostic.notes) remark("", each);
    if (!diagnostic.fix.empty()) remark("help: ", diagnostic.fix);
  }

  std::string take() { return std::move(out_); }

 private:
  std::string paint(std::string_view text, std::string_view colour) const {
    if (!style_.colour) return std::string(text);
    return fmt::format("{}{}{}", colour, text, kReset);
  }

  /// Lines are shown in the order of the file, that of the primary label first; marks of one line from left to right.
  std::vector<Line> lines_of(const Diagnostic& diagnostic) const {
    std::vector<Line> result;
    if (!diagnostic.primary.span.valid()) return result;
    place(diagnostic.primary, true, result);
    for (const Label& label : diagnostic.labels)
      if (label.span.valid()) place(label, false, result);
    const SourceId first = diagnostic.primary.span.source;
    std::stable_sort(result.begin(), result.end(), [&](const Line& a, const Line& b) {
      const auto rank = [&](const Line& line) {
        return std::pair(line.source == first ? 0u : line.source.value + 1, line.number);
      };
      return rank(a) < rank(b);
    });
    for (Line& line : result)
      std::stable_sort(line.marks.begin(), line.marks.end(),
                       [](const Mark& a, const Mark& b) { return a.begin < b.begin; });
    return result;
  }

  std::uint32_t room() const { return width_ - static_cast<std::uint32_t>(std::min<std::size_t>(gutter_ + 4, 20)); }

  void place(const Label& label, bool primary, std::vector<Line>& lines) const {
    const Source& source = sources_[label.span.source];
    const std::uint32_t begin =
        std::min<std::uint32_t>(label.span.begin, static_cast<std::uint32_t>(source.text.size()));
    const std::uint32_t number = sources_.place(label.span.source, begin).line;
    const std::uint32_t first = source.lines[number - 1];
    const std::uint32_t last = line_end(source, number);
    Mark mark;
    mark.primary = primary;
    mark.begin = std::min(begin, last) - first;
    // Of several lines, the first is marked.
    mark.end = std::max(std::min(label.span.end, last), std::min(begin, last)) - first;
    mark.text = one_line(label.text);
    for (Line& line : lines) {
      if (line.source != label.span.source || line.number != number) continue;
      // Marks far apart on one long line are shown apart.
      const std::uint32_t there = line.marks.front().begin;
      const std::uint32_t apart = std::max(there, mark.begin) - std::min(there, mark.begin);
      if (last - first > room() && apart > room() / 3) continue;
      line.marks.push_back(std::move(mark));
      return;
    }
    lines.push_back({label.span.source, number, {std::move(mark)}});
  }

  static std::uint32_t line_end(const Source& source, std::uint32_t number) {
    const std::uint32_t begin = source.lines[number - 1];
    std::uint32_t end =
        number < source.lines.size() ? source.lines[number] - 1 : static_cast<std::uint32_t>(source.text.size());
    while (end > begin && (source.text[end - 1] == '\r' || source.text[end - 1] == '\n')) --end;
    return end;
  }

  void snippet(const Diagnostic& diagnostic, std::vector<Line> lines) {
    SourceId source;
    for (const Line& line : lines) {
      if (line.source != source) {
        const bool first = !source.valid();
        source = line.source;
        const Span at = first ? diagnostic.primary.span : span_of(line);
        const LineColumn where = sources_.place(at.source, at.begin);
        out_ += std::string(gutter_ + 1, ' ') + paint(first ? "-->" : ":::", kBlue);
        out_ += fmt::format(" {}:{}:{}\n", one_line(sources_[source].name), where.line, where.column);
        out_ += std::string(gutter_ + 2, ' ') + paint("|", kBlue) + "\n";
      }
      show(line, diagnostic.severity);
    }
  }

  Span span_of(const Line& line) const {
    const std::uint32_t first = sources_[line.source].lines[line.number - 1];
    return {line.source, first + line.marks.front().begin, first + line.marks.front().end};
  }

  void show(const Line& line, Severity severity) {
    const Window window = window_of(line);
    out_ += paint(fmt::format(" {:>{}} |", line.number, gutter_), kBlue);
    if (!window.text.empty()) out_ += " " + window.text;
    out_ += "\n";

    // The marks in one row, the primary over the others.
    std::string row;
    std::string owner;
    for (const bool primary : {false, true}) {
      for (const Mark& mark : line.marks) {
        if (mark.primary != primary) continue;
        const std::uint32_t begin = window.column(mark.begin);
        const std::uint32_t end = std::max(window.column(mark.end), begin + 1);
        if (row.size() < end) {
          row.resize(end, ' ');
          owner.resize(end, ' ');
        }
        std::fill(row.begin() + begin, row.begin() + end, primary ? '^' : '-');
        std::fill(owner.begin() + begin, owner.begin() + end, primary ? 'p' : 's');
      }
    }
    std::string painted;
    for (std::size_t i = 0; i < row.size();) {
      std::size_t j = i;
      while (j < row.size() && owner[j] == owner[i]) ++j;
      const std::string part = row.substr(i, j - i);
      painted += owner[i] == ' ' ? part : paint(part, owner[i] == 'p' ? colour_of(severity) : kBlue);
      i = j;
    }
    // The words of the last mark stand behind the row, those of the others below it.
    std::vector<const Mark*> below;
    for (const Mark& mark : line.marks)
      if (!mark.text.empty()) below.push_back(&mark);
    if (!below.empty() && window.column(below.back()->end) >= row.size()) {
      painted += " " + words(*below.back(), severity);
      below.pop_back();
    }
    margin(painted);
    while (!below.empty()) {
      std::string text;
      std::uint32_t at = 0;
      for (std::size_t i = 0; i < below.size(); ++i) {
        const std::uint32_t column = window.column(below[i]->begin);
        const bool last = i + 1 == below.size();
        if (column < at || (!last && column == window.column(below.back()->begin))) continue;
        text += std::string(column - at, ' ');
        text += last ? words(*below[i], severity) : paint("|", below[i]->primary ? colour_of(severity) : kBlue);
        at = column + 1;
      }
      margin(text);
      below.pop_back();
    }
  }

  std::string words(const Mark& mark, Severity severity) const {
    return paint(mark.text, mark.primary ? colour_of(severity) : kBlue);
  }

  void margin(const std::string& text) {
    out_ += std::string(gutter_ + 2, ' ') + paint("|", kBlue);
    if (!text.empty()) out_ += " " + text;
    out_ += "\n";
  }

  void remark(std::string_view what, std::string_view text) {
    // Each line of a remark has a margin of its own.
    while (true) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out_ += std::string(gutter_ + 2, ' ') + paint("=", kBlue) + " ";
      out_ += paint(what, kBold) + one_line(text.substr(0, end)) + "\n";
      if (end == text.size()) return;
      text.remove_prefix(end + 1);
      what = "";
    }
  }

  /// The line, or the part of it around its first mark that fits.
  Window window_of(const Line& line) const {
    const Source& source = sources_[line.source];
    const std::uint32_t first = source.lines[line.number - 1];
    const std::uint32_t last = line_end(source, line.number);
    const std::string_view text = std::string_view(source.text).substr(first, last - first);

    Window result;
    const std::uint32_t wanted = line.marks.front().begin;
    if (text.size() > room() && wanted > room() / 2) {
      result.begin = wanted - room() / 3;
      while (result.begin > 0 && (static_cast<unsigned char>(text[result.begin]) & 0xC0) == 0x80) --result.begin;
      result.text = "...";
    }
    std::uint32_t column = static_cast<std::uint32_t>(result.text.size());
    std::uint32_t at = result.begin;
    while (at < text.size()) {
      const std::size_t length = utf8_length(text, at);
      const char32_t character = length == 0 ? U'?' : utf8_character(text, at, length);
      const bool tab = character == U'\t';
      const bool shown = length > 0 && is_printable(character);
      const std::uint32_t columns = tab ? kTab - column % kTab : shown ? display_width(character) : 1;
      if (column + columns + 3 > room() && text.size() - at > 3) {
        result.text += "...";
        break;
      }
      if (tab)
        result.text.append(columns, ' ');
      else if (shown)
        result.text += text.substr(at, length);
      else
        result.text += '?';
      for (std::size_t i = 0; i < std::max<std::size_t>(length, 1); ++i) result.columns.push_back(column);
      column += columns;
      at += static_cast<std::uint32_t>(std::max<std::size_t>(length, 1));
    }
    result.columns.push_back(column);
    result.end = at;
    while (!result.text.empty() && result.text.back() == ' ') result.text.pop_back();
    return result;
  }

  const Sources& sources_;
  const RenderStyle& style_;
  std::uint32_t width_ = 0;
  std::size_t gutter_ = 1;
  std::string out_;
};

nlohmann::ordered_json place_json(const Sources& sources, const Label& label) {
  nlohmann::ordered_json result;
  const LineColumn begin = sources.place(label.span.source, label.span.begin);
  const LineColumn end = sources.place(label.span.source, label.span.end);
  result["file"] = valid_utf8(sources[label.span.source].name);
  result["line"] = begin.line;
  result["column"] = begin.column;
  result["end_line"] = end.line;
  result["end_column"] = end.column;
  if (!label.text.empty()) result["label"] = valid_utf8(label.text);
  return result;
}

}  // namespace

std::string render_snippets(const Sources& sources, const Diagnostics& diagnostics, const RenderStyle& style) {
  Snippets snippets(sources, style);
  for (const Diagnostic& each : diagnostics.all()) snippets.add(each);
  std::string result = snippets.take();
  if (diagnostics.dropped() > 0) result += fmt::format("and {} more\n", diagnostics.dropped());
  return result;
}

std::string render_lines(const Sources& sources, const Diagnostics& diagnostics) {
  std::string result;
  for (const Diagnostic& each : diagnostics.all()) {
    if (each.primary.span.valid()) {
      const LineColumn where = sources.place(each.primary.span.source, each.primary.span.begin);
      result += fmt::format("{}:{}:{}: ", one_line(sources[each.primary.span.source].name), where.line, where.column);
    }
    result += fmt::format("{}: {} [{}]\n", word(each.severity), one_line(each.message), each.kind);
  }
  if (diagnostics.dropped() > 0) result += fmt::format("and {} more\n", diagnostics.dropped());
  return result;
}

nlohmann::ordered_json diagnostics_json(const Sources& sources, const Diagnostics& diagnostics) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const Diagnostic& each : diagnostics.all()) {
    nlohmann::ordered_json item;
    item["severity"] = word(each.severity);
    item["kind"] = each.kind;
    item["message"] = valid_utf8(each.message);
    if (each.primary.span.valid()) item.update(place_json(sources, each.primary));
    for (const Label& label : each.labels)
      if (label.span.valid()) item["labels"].push_back(place_json(sources, label));
    for (const std::string& note : each.notes) item["notes"].push_back(valid_utf8(note));
    if (!each.fix.empty()) item["fix"] = valid_utf8(each.fix);
    result.push_back(std::move(item));
  }
  return result;
}

}  // namespace stave
