#include "cli/golden_file.h"

#include <charconv>
#include <optional>

namespace stave {
namespace {

/// Calls `visit` with each line, without its line end.
template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// What follows `head` and one space in `line`; none if the line begins otherwise.
std::optional<std::string_view> after(std::string_view line, std::string_view head) {
  if (!line.starts_with(head)) return std::nullopt;
  line.remove_prefix(head.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

int number(std::string_view text) {
  int result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

void append_marked(std::string& result, std::string_view mark, std::string_view lines) {
  for_each_line(lines, [&](std::string_view line) {
    result += mark;
    if (!line.empty()) result += ' ';
    result += line;
    result += '\n';
  });
}

}  // namespace

GoldenFile read_golden(std::string_view text) {
  GoldenFile result;
  for_each_line(text, [&](std::string_view line) {
    if (const auto run = after(line, "# RUN:")) {
      result.run.emplace_back(*run);
    } else if (const auto exit = after(line, "# EXIT:")) {
      result.exit = number(*exit);
    } else if (const auto kind = after(line, "# KIND:")) {
      result.kind = *kind;
    } else if (const auto about = after(line, "# ABOUT:")) {
      result.about.emplace_back(*about);
    } else if (const auto repair = after(line, "# REPAIR")) {
      const std::size_t colon = repair->find(':');
      const std::string_view mended = colon == std::string_view::npos ? "" : repair->substr(colon + 1);
      result.repairs.emplace_back(number(repair->substr(0, colon)),
                                  mended.starts_with(' ') ? mended.substr(1) : mended);
    } else if (const auto out = after(line, "#>")) {
      result.out.append(*out).append("\n");
    } else if (const auto err = after(line, "#!")) {
      result.err.append(*err).append("\n");
    } else {
      result.body.append(line).append("\n");
    }
  });
  return result;
}

std::string repaired(const GoldenFile& golden) {
  std::string result;
  std::size_t number = 0;
  for_each_line(golden.body, [&](std::string_view line) {
    ++number;
    bool mended = false;
    for (const auto& [at, text] : golden.repairs) {
      if (at != number) continue;
      mended = true;
      if (!text.empty()) result.append(text).append("\n");
    }
    if (!mended) result.append(line).append("\n");
  });
  return result;
}

std::string with_output(std::string_view text, std::string_view out, std::string_view err) {
  std::string result;
  for_each_line(text, [&](std::string_view line) {
    if (!line.starts_with("#>") && !line.starts_with("#!")) result.append(line).append("\n");
  });
  append_marked(result, "#>", out);
  append_marked(result, "#!", err);
  return result;
}

}  // namespace stave
