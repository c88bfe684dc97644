#include "cli/compare/columns.h"

#include <algorithm>

#include "cli/report.h"
#include "compiler/utf8.h"

namespace stave {
namespace {

std::size_t width_of(const std::string& text) {
  std::size_t result = 0;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text, at)) ++result;
  return result;
}

}  // namespace

std::string columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (std::size_t c = 0; c < widths.size(); ++c) {
    bool used = false;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      widths[c] = std::max(widths[c], width_of(rows[r][c]));
      used = used || (r > 0 && !rows[r][c].empty());
    }
    if (!used) widths[c] = 0;
  }
  std::string result;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (widths[c] == 0) continue;
      const std::string space(widths[c] - width_of(row[c]), ' ');
      if (!line.empty()) line += "  ";
      line += c == 0 ? row[c] + space : space + row[c];
    }
    result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return result;
}

std::string number_text(const std::optional<Rational>& value) { return value ? number_text(value->to_double()) : "-"; }

}  // namespace stave
