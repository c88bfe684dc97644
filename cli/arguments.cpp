#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/library.h"

namespace stave {
namespace {

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Result<void> add(std::vector<NamedText>& to, NamedText parameter) {
  for (const NamedText& each : to)
    if (each.name == parameter.name) return Failure{fmt::format("parameter `{}` is given twice", parameter.name)};
  to.push_back(std::move(parameter));
  return {};
}

}  // namespace

void ScheduleOptions::add_to(CLI::App& command) {
  command.add_option("SCHEDULE", words, "a .sched or PyTorch CSV file, a name of the library, or -\n"
                     "for standard input; then NAME=VALUE parameters")
      ->required();
  command.add_option("-D", definitions, "a parameter of all files")->type_name("NAME=VALUE")->allow_extra_args(false);
  command.add_option("--cost", cost, "costs in place of the file's, as F=18522,I=18086/3,message=601")
      ->type_name("NAME=VALUE,...");
  command.add_option("--costs", costs, "a file of measured costs in place of the schedule's own (TOML)")
      ->type_name("FILE");
  command.add_option("--cluster", cluster, "the machine to price it on (TOML, or a name of the library); with --model")
      ->type_name("FILE");
  command.add_option("--model", model, "what is trained (TOML, or a name of the library); with --cluster")
      ->type_name("FILE");
  command.add_option("--map", map, "the place on the cluster of each device, as 0,1,4,5 or 0..4,8..12, or best\n"
                     "for those with which it ends soonest; in order without")
      ->type_name("LIST");
}

Result<std::vector<std::uint32_t>> read_map(const std::string& text) {
  const Failure wrong{fmt::format("--map takes places, as 0,1,4,5 or 0..4,8..12, and not `{}`", text)};
  std::vector<std::uint32_t> result;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::uint32_t first = 0;
    const auto [rest, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first >= kMostPlaces) return wrong;
    std::uint32_t last = first + 1;
    at = rest;
    if (end - at > 2 && at[0] == '.' && at[1] == '.') {
      const auto [behind, other_error] = std::from_chars(at + 2, end, last);
      if (other_error != std::errc() || last > kMostPlaces || last <= first) return wrong;
      at = behind;
    }
    if (result.size() + (last - first) > kMostPlaces) return wrong;
    for (; first < last; ++first) result.push_back(first);
    if (at == end) break;
    if (*at != ',' || at + 1 == end) return wrong;
    ++at;
  }
  std::vector<std::uint32_t> sorted = result;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return Failure{fmt::format("--map puts two devices on place {}", *twice)};
  return result;
}

std::optional<Rational> exact_number(std::string_view text) {
  const auto decimal = [](std::string_view digits) -> std::optional<Rational> {
    const std::size_t point = std::min(digits.find('.'), digits.size());
    const auto all_digits = [](std::string_view each) {
      return !each.empty() && std::ranges::all_of(each, [](char c) { return c >= '0' && c <= '9'; });
    };
    if (!all_digits(digits.substr(0, point))) return {};
    if (point < digits.size() && !all_digits(digits.substr(point + 1))) return {};
    return parse_decimal(digits);
  };
  const std::size_t slash = text.find('/');
  const std::optional<Rational> above = decimal(text.substr(0, slash));
  if (!above || slash == std::string_view::npos) return above;
  const std::optional<Rational> below = decimal(text.substr(slash + 1));
  return below ? divide(*above, *below) : std::nullopt;
}

CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && rest == end && std::isfinite(value) && value >= least && value <= most) return std::string();
        return fmt::format("takes a number from {} to {}, and not `{}`", least, most, text);
      },
      "");
}

CLI::Validator whole_between(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && rest == end && value >= least && value <= most) return std::string();
        return fmt::format("takes a whole number from {} to {}, and not `{}`", least, most, text);
      },
      "");
}

Result<NamedText> named_text(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || !is_name(std::string_view(word).substr(0, equals)))
    return Failure{fmt::format("`{}` is no NAME=VALUE", word)};
  if (equals + 1 == word.size()) return Failure{fmt::format("parameter `{}` has no value", word.substr(0, equals))};
  return NamedText{word.substr(0, equals), word.substr(equals + 1)};
}

Result<std::vector<NamedText>> common_parameters(const ScheduleOptions& options) {
  std::vector<NamedText> result;
  for (const std::string& word : options.definitions) {
    Result<NamedText> parameter = named_text(word);
    if (!parameter) return parameter.failure();
    if (Result<void> added = add(result, std::move(*parameter)); !added) return added.failure();
  }
  return result;
}

Result<std::vector<ScheduleArgument>> schedule_arguments(const ScheduleOptions& options, bool several) {
  Result<std::vector<NamedText>> definitions = common_parameters(options);
  if (!definitions) return definitions.failure();
  const std::vector<NamedText>& common = *definitions;
  std::vector<ScheduleArgument> result;
  for (const std::string& word : options.words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !is_name(std::string_view(word).substr(0, equals))) {
      if (!result.empty() && !several)
        return Failure{fmt::format("one schedule file is taken, and `{}` is a second one", word)};
      Result<std::string> file = find_schedule(word);
      if (!file) return file.failure();
      result.push_back({std::move(*file), common});
      continue;
    }
    Result<NamedText> parameter = named_text(word);
    if (!parameter) return parameter.failure();
    if (result.empty())
      return Failure{several ? fmt::format("`{0}` comes before any schedule file; `-D {0}` is for all of them", word)
                             : fmt::format("`{}` comes before any schedule file", word)};
    if (Result<void> added = add(result.back().parameters, std::move(*parameter)); !added)
      return added.failure();
  }
  if (std::count_if(result.begin(), result.end(), [](const ScheduleArgument& each) { return each.file == "-"; }) > 1)
    return Failure{"standard input can be read once only"};
  return result;
}

}  // namespace stave
