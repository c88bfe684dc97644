#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "compiler/nearest.h"

namespace stave {
namespace {

/// Long names of a command's options, as typed.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> result;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) result.push_back("--" + name);
    for (const std::string& name : option->get_snames()) result.push_back("-" + name);
  }
  return result;
}

/// The first option that stands twice; empty if none does.
std::string given_twice(const std::vector<std::string>& words) {
  std::vector<std::string> seen;
  for (const std::string& word : words) {
    if (!word.starts_with("--") || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return name;
    seen.push_back(name);
  }
  return "";
}

/// What is wrong with the command line, in our words where CLI11 only says that something was not expected.
std::string complaint(CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error) {
  CLI::App* command = nullptr;
  if (!words.empty() && !words[0].starts_with("-")) {
    std::vector<std::string> names;
    for (CLI::App* each : app.get_subcommands({})) {
      names.push_back(each->get_name());
      if (each->get_name() == words[0]) command = each;
    }
    if (command == nullptr) {
      const std::string_view nearest = nearest_name(words[0], {names.begin(), names.end()});
      std::string result = fmt::format("no command is called `{}`", words[0]);
      if (!nearest.empty()) result += fmt::format("; did you mean `{}`?", nearest);
      return result + "\nstave --help lists the commands";
    }
  }
  CLI::App& where = command == nullptr ? app : *command;
  const std::string help = fmt::format("stave{} --help lists the options", command ? " " + where.get_name() : "");
  const std::vector<std::string> known = option_names(where);
  for (std::size_t i = command == nullptr ? 0 : 1; i < words.size(); ++i) {
    if (words[i] == "--") break;
    if (!words[i].starts_with("-") || words[i] == "-") continue;
    std::string name = words[i].substr(0, words[i].find('='));
    // A negative number is a value, and its option says what it takes.
    if (words[i].find_first_of("0123456789.") == 1) continue;
    // One dash and a letter may be followed by the value at once.
    if (!name.starts_with("--")) name = name.substr(0, 2);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = nearest_name(name, {known.begin(), known.end()});
    std::string result = fmt::format("no option of `stave {}` is called `{}`", where.get_name(), name);
    if (command == nullptr) result = fmt::format("no option is called `{}`", name);
    if (!nearest.empty()) result += fmt::format("; did you mean `{}`?", nearest);
    return result + "\n" + help;
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    if (const std::string twice = given_twice(words); !twice.empty())
      return fmt::format("{} is given twice{}\n{}", twice,
                         twice == "--cost" ? "; it takes several at once, as F=18522,message=601" : "", help);
  return fmt::format("{}\n{}", error.what(), help);
}

/// An empty name, as of a variable that is not set, would be taken for an option that is not given.
void refuse_empty_values(CLI::App& command) {
  const CLI::Validator is_given([](std::string& text) { return text.empty() ? "its value is empty" : ""; }, "");
  for (CLI::Option* option : command.get_options())
    if (!option->get_lnames().empty() && option->get_expected_min() > 0 && !option->check_lname("stage-options"))
      option->check(is_given);
}

Exit run_command_line(int count, char** arguments) {
  CLI::App app("A pipeline-parallel training schedule, written in a small language, is checked, drawn, priced and run.",
               "stave");
  app.set_version_flag("--version", "stave " STAVE_VERSION);
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(0, 1);
  Exit exit = Exit::Done;
  for (auto add : {add_check, add_show, add_table, add_simulate, add_compare, add_diff, add_draw, add_partition, add_profile,
                   add_run, add_list, add_explain}) {
    CLI::App* command = add(app, exit);
    command->set_help_flag("-h,--help", "print this help");
    command->get_formatter()->column_width(30);
    refuse_empty_values(*command);
  }
  app.get_formatter()->column_width(30);
  app.footer("Example:\n  stave show zb_h1 P=4 M=8\n\nstave COMMAND --help says more of each.");

  const std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    app.parse(count, arguments);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    const Result<void> printed = print(chosen.empty() ? app.help() : chosen[0]->help());
    return printed ? Exit::Done : fail(printed.failure().message);
  } catch (const CLI::CallForVersion& version) {
    const Result<void> printed = print(std::string(version.what()) + "\n");
    return printed ? Exit::Done : fail(printed.failure().message);
  } catch (const CLI::ParseError& error) {
    return fail(complaint(app, words, error));
  }
  if (app.get_subcommands().empty()) {
    print_error(app.help());
    return Exit::Usage;
  }
  return exit;
}

}  // namespace

int run_program(int count, char** arguments) {
  end_on_signals();
  try {
    return static_cast<int>(run_command_line(count, arguments));
  } catch (const std::bad_alloc&) {
    return static_cast<int>(fail("out of memory"));
  } catch (const std::exception& error) {
    print_error(std::string("stave: a bug: ") + error.what() + "\nPlease report it, with the command and the file.\n");
    return static_cast<int>(Exit::Bug);
  }
}

}  // namespace stave
