// stave list: the library, and a table of its figures.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/library.h"
#include "cli/over.h"
#include "cli/pipeline.h"
#include "cli/report.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

struct ListArguments {
  bool table = false;
  bool json = false;
  std::string output = "-";
};

/// Devices and microbatches that the table asks for.
struct Size {
  std::int64_t devices = 0;
  std::int64_t microbatches = 0;
};
constexpr Size kSizes[] = {{4, 8}, {16, 64}};

/// A schedule of the library at the size nearest to one of those.
struct Case {
  std::string parameters;
  Json figures;
  std::string makespan;
  std::string span;
};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The numbers among the parameters.
std::string size_text(const Schedule& schedule) {
  std::string result;
  for (const NamedText& each : parameters_of(schedule))
    if (!each.value.starts_with('[')) result += fmt::format("{}{}={}", result.empty() ? "" : " ", each.name, each.value);
  return result;
}

/// The nearest to `value` first; those below before those above.
std::vector<std::int64_t> around(std::int64_t value) {
  std::vector<std::int64_t> result = {value};
  for (std::int64_t distance = 1; distance < value; ++distance) {
    result.push_back(value - distance);
    result.push_back(value + distance);
  }
  return result;
}

/// What `size` gives, or, where a `require` refuses it, the nearest that is admitted: other microbatches before other
/// devices, and first those that are the file's own default. None if there is none.
/// Errors: a schedule that is wrong, or whose `expect` is false; it is printed.
Result<std::optional<Case>> price(const Loaded& loaded, Size size) {
  const std::vector<std::string> names = loaded.compiled->parameters();
  std::vector<std::int64_t> devices = {0};
  if (has(names, "P")) devices = around(size.devices);
  // 0 is the default of the file.
  std::vector<std::int64_t> microbatches = {0};
  if (has(names, "M")) {
    microbatches = around(size.microbatches);
    microbatches.insert(microbatches.begin() + 1, 0);
  }
  for (const std::int64_t p : devices) {
    for (const std::int64_t m : microbatches) {
      std::vector<Argument> arguments;
      if (p > 0) arguments.push_back(make_argument("P", p));
      if (m > 0) arguments.push_back(make_argument("M", m));
      Built built;
      const Result<Outcome> outcome = build(built, loaded, arguments, Step::Priced);
      if (!outcome) return outcome.failure();
      if (outcome.value() == Outcome::Refused) continue;
      if (outcome.value() != Outcome::Done || built.expects.has_errors()) {
        print_diagnostics(loaded.sources, built.sink);
        print_diagnostics(loaded.sources, built.expects);
        return Failure{fmt::format("{} with {} does not pass `stave check`", loaded.name(), text_of(arguments))};
      }
      return std::optional<Case>({size_text(*built.schedule), report_json(built), time_text(built, built.report->makespan),
                                  time_text(built, built.report->span)});
    }
  }
  return std::optional<Case>();
}

std::int64_t peak_of(const Case& priced) {
  std::int64_t result = 0;
  for (const Json& device : priced.figures["devices"])
    result = std::max(result, device["peak_activations"].get<std::int64_t>());
  return result;
}

/// Text inside a cell of Markdown.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

struct Entry {
  LibraryFile file;
  Header header;
  std::vector<std::optional<Case>> cases;
};

std::string text_of(const std::vector<Entry>& entries) {
  std::size_t width = 0;
  for (const Entry& each : entries) width = std::max(width, each.file.name.size());
  std::string result;
  for (const Entry& each : entries)
    result += fmt::format("{:<{}}  {}\n{:<{}}  {}\n", each.file.name, width, each.header.about, "", width,
                          each.header.source);
  return result + "\nA name stands for its file in every command: stave show NAME, stave check NAME P=8.\n";
}

std::string markdown_of(const std::vector<Entry>& entries) {
  std::string result =
      "# The library\n\n"
      "One schedule a file. This table is what `stave list --table` prints; `ninja library-update` writes it again.\n\n"
      "* Costs are those of the files: without a `cost` line a slot for each of `F`, `I` and `W`, on a stage, a chunk or a\n"
      "  slice, and none for a message. So makespans compare only where devices have equally many of them.\n"
      "* Sizes are P=4, M=8 and P=16, M=64, or the nearest that the file admits; other parameters have their defaults.\n"
      "* Lines are lines of language: neither blank nor a comment.\n"
      "* Span: the longest of a device, from its own first op to its own last. Peak: the most activations (of a stage,\n"
      "  microbatch and slice) that a device holds. Messages: between two devices.\n\n"
      "| schedule | source | lines | size | makespan | span | bubble: 1 - busy / (makespan * devices) | peak | messages |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const Entry& each : entries) {
    for (std::size_t i = 0; i < each.cases.size(); ++i) {
      result += i > 0 ? std::string("| | | ")
                      : fmt::format("| [{0}]({0}.sched) | {1} | {2} ", cell(each.file.name), cell(each.header.source),
                                    lines_of_language(each.file.text));
      if (!each.cases[i]) {
        result += fmt::format("| none near P={}, M={} is admitted | - | - | - | - | - |\n", kSizes[i].devices,
                              kSizes[i].microbatches);
        continue;
      }
      const Case& priced = *each.cases[i];
      result += fmt::format("| {} | {} | {} | {:.1f} % | {} | {} |\n", cell(priced.parameters), priced.makespan,
                            priced.span, 100 * priced.figures["bubble"].get<double>(), peak_of(priced),
                            priced.figures["messages"].get<std::int64_t>());
    }
  }
  return result;
}

Json json_of(const std::vector<Entry>& entries) {
  Json result = Json::array();
  for (const Entry& each : entries) {
    Json entry = {{"name", each.file.name},
                  {"file", each.file.path},
                  {"about", each.header.about},
                  {"source", each.header.source},
                  {"lines", lines_of_language(each.file.text)}};
    for (const std::optional<Case>& priced : each.cases) entry["cases"].push_back(priced ? priced->figures : Json());
    result.push_back(std::move(entry));
  }
  return result;
}

Exit list(const ListArguments& arguments) {
  if (const Result<void> checked = check_output(arguments.output, {}); !checked) return fail(checked.failure().message);
  Result<std::vector<LibraryFile>> files = read_library();
  if (!files) return fail(files.failure().message);
  std::vector<Entry> entries;
  Progress progress("pricing");
  for (LibraryFile& file : *files) {
    progress.show(entries.size(), files->size());
    Entry entry{std::move(file), {}, {}};
    entry.header = read_header(entry.file.text);
    if (arguments.table) {
      const Result<Loaded> loaded = load(entry.file.path, {});
      if (!loaded) return fail(loaded.failure().message);
      print_diagnostics(loaded.value().sources, loaded.value().sink);
      if (!loaded.value().ok()) return Exit::Rejected;
      for (const Size size : kSizes) {
        Result<std::optional<Case>> priced = price(loaded.value(), size);
        if (!priced) {
          fail(priced.failure().message);
          return Exit::Rejected;
        }
        entry.cases.push_back(std::move(*priced));
      }
    }
    entries.push_back(std::move(entry));
  }
  progress.clear();
  std::string text = arguments.table ? markdown_of(entries) : text_of(entries);
  if (arguments.json) text = json_of(entries).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const Result<void> written = write_output(arguments.output, text, {});
  return written ? Exit::Done : fail(written.failure().message);
}

}  // namespace

CLI::App* add_list(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("list", "the library: what its schedules are, and where they come from");
  const auto arguments = std::make_shared<ListArguments>();
  command->add_flag("--table", arguments->table, "with the figures of each, as a table of Markdown");
  command->add_flag("--json", arguments->json, "one JSON array; with --table, each with `cases` as of `simulate`");
  command->add_option("-o,--output", arguments->output, "the file to write, - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command->footer("The library is the folder `schedules` that the program came with, or $STAVE_SCHEDULES.\n\n"
                  "Example:\n  stave list --table -o schedules/README.md");
  command->callback([arguments, &exit] { exit = list(*arguments); });
  return command;
}

}  // namespace stave
