// stave explain: what a kind of diagnostic means, with a file that has it, what is said, and the repair.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/examples.h"
#include "cli/golden_file.h"
#include "compiler/diagnostic_kinds.h"
#include "compiler/nearest.h"

namespace stave {
namespace {

std::string list_of_kinds() {
  std::size_t width = 0;
  for (const Kind& kind : kKinds) width = std::max(width, kind.name.size());
  std::string result;
  for (const Kind& kind : kKinds) result += fmt::format("{:<{}}  {}\n", kind.name, width, kind.meaning);
  return result + "\nstave explain KIND shows a file that fails so, and its repair.\n";
}

/// The text with every line moved to the right and, if asked for, numbered.
std::string indented(const std::string& text, bool numbered) {
  std::string result;
  std::size_t number = 0;
  std::size_t begin = 0;
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t width = std::to_string(lines).size();
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    std::string prefix = numbered ? fmt::format("  {:>{}} | ", ++number, width) : "    ";
    result += line.empty() ? prefix.erase(prefix.find_last_not_of(' ') + 1) + "\n" : prefix + line + "\n";
    begin = end + 1;
  }
  return result;
}

std::string repair_of(const GoldenFile& golden) {
  std::string result;
  std::size_t shown = 0;
  for (const auto& [at, mended] : golden.repairs) {
    if (at != shown) {
      std::size_t begin = 0;
      for (std::size_t line = 1; line < at && begin != std::string::npos; ++line)
        begin = golden.body.find('\n', begin) + 1;
      const std::string old = golden.body.substr(begin, golden.body.find('\n', begin) - begin);
      result += fmt::format("  {} - {}\n", at, old);
      shown = at;
    }
    if (!mended.empty()) result += fmt::format("  {:>{}} + {}\n", "", std::to_string(at).size(), mended);
  }
  return result;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

/// The file that a line of a script writes, `printf 'TEXT' > %t/NAME`, as it is shown; empty if it is another line.
std::string file_written(const std::string& line) {
  constexpr std::string_view kBegin = "printf '";
  constexpr std::string_view kEnd = "' > %t/";
  const std::size_t end = line.find(kEnd);
  if (!line.starts_with(kBegin) || end == std::string::npos) return "";
  const std::string text = replaced(line.substr(kBegin.size(), end - kBegin.size()), "\\n", "\n");
  return fmt::format("\n{}:\n\n{}", line.substr(end + kEnd.size()), indented(text, true));
}

std::string page(const Kind& kind) {
  std::string result = fmt::format("{}: {}.\n", kind.name, kind.meaning);
  for (const Example& example : examples()) {
    const GoldenFile golden = read_golden(example.text);
    if (golden.kind != kind.name) continue;
    if (!golden.about.empty()) result += "\n";
    for (const std::string& line : golden.about) result += line + "\n";
    std::string body = golden.body;
    body.erase(body.find_last_not_of('\n') + 1);
    if (!body.empty()) result += fmt::format("\n{}:\n\n{}", example.name, indented(body + "\n", true));
    std::string script;
    for (const std::string& line : golden.run) {
      const std::string file = file_written(line);
      result += file;
      if (file.empty()) script += "$ " + replaced(replaced(line, "%s", example.name), "%t/", "") + "\n";
    }
    result += fmt::format("\nWhat is said:\n\n{}\n", indented(script, false));
    result += indented(replaced(golden.out + golden.err, "%t/", ""), false);
    if (!golden.repairs.empty()) result += fmt::format("\nThe repair:\n\n{}", repair_of(golden));
  }
  return result;
}

Exit explain(const std::string& name) {
  std::string text;
  if (name.empty()) {
    text = list_of_kinds();
  } else {
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.name == name; });
    if (kind == std::end(kKinds)) {
      std::vector<std::string_view> known;
      for (const Kind& each : kKinds) known.push_back(each.name);
      const std::string_view nearest = nearest_name(name, known);
      return fail(fmt::format("no kind of diagnostic is called `{}`{}\nstave explain lists them", name,
                              nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest)));
    }
    text = page(*kind);
  }
  const Result<void> printed = print(text);
  return printed ? Exit::Done : fail(printed.failure().message);
}

}  // namespace

CLI::App* add_explain(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("explain", "what a kind of diagnostic means, with a failing file and its repair");
  const auto name = std::make_shared<std::string>();
  command->add_option("KIND", *name, "the name in brackets behind a message; without it, all are listed");
  command->footer("Example:\n  stave explain backward-before-forward");
  command->callback([name, &exit] { exit = explain(*name); });
  return command;
}

}  // namespace stave
