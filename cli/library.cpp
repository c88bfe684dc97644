#include "cli/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "compiler/nearest.h"
#include "compiler/source.h"

namespace stave {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".sched";

/// The next line of `rest`, taken off it.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_library_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "std" / "training.sched", ignored);
}

/// As short as it can be said from the current folder.
std::string shown(const fs::path& path) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error) return path.string();
  const fs::path relative = path.lexically_relative(here);
  return relative.empty() || *relative.begin() == ".." ? path.string() : relative.string();
}

/// Where each part of the library is, and what one of its files is called.
struct PartOfLibrary {
  std::string_view folder;
  std::string_view suffix;
  std::string_view one;
};
constexpr std::array<PartOfLibrary, 3> kParts = {
    {{"", kSuffix, "schedule"}, {"clusters", ".toml", "cluster"}, {"models", ".toml", "model"}}};

/// Names in a part of the library. Errors: a folder that cannot be read.
Result<std::vector<std::string>> names_of(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> result;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    if (file.size() > suffix.size() && file.ends_with(suffix) && file[0] != '.')
      result.push_back(file.substr(0, file.size() - suffix.size()));
  }
  if (error) return Failure{fmt::format("cannot read the library `{}`: {}", folder, error.message())};
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

Header read_header(std::string_view text) {
  constexpr std::string_view kSource = "Source:";
  std::string about;
  std::string source;
  std::string* into = &about;
  while (!text.empty()) {
    std::string_view line = trimmed(take_line(text));
    if (!line.starts_with('#')) {
      // Blank lines may stand above the comment.
      if (line.empty() && about.empty() && source.empty()) continue;
      break;
    }
    line = trimmed(line.substr(1));
    // What the parameters are comes after an empty line.
    if (line.empty() && !source.empty()) break;
    if (line.starts_with(kSource)) {
      into = &source;
      line = trimmed(line.substr(kSource.size()));
    }
    if (line.empty()) continue;
    if (!into->empty()) *into += ' ';
    *into += line;
  }
  about.resize(std::min(about.find(". "), about.size() - 1) + 1);
  source.resize(std::min({source.find(". "), source.find("; "), source.size()}));
  if (source.ends_with('.')) source.pop_back();
  return {std::move(about), std::move(source)};
}

std::size_t lines_of_language(std::string_view text) {
  std::size_t result = 0;
  while (!text.empty()) {
    const std::string_view line = trimmed(take_line(text));
    if (!line.empty() && !line.starts_with('#')) ++result;
  }
  return result;
}

std::string library_folder() {
  if (const char* chosen = std::getenv("STAVE_SCHEDULES"); chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error)
    for (fs::path above = program.parent_path(); above.has_relative_path(); above = above.parent_path())
      if (is_library_folder(above / "schedules")) return (above / "schedules").string();
  return (fs::path(STAVE_SOURCE_DIR) / "schedules").string();
}

Result<std::vector<LibraryFile>> read_library() {
  const std::string folder = library_folder();
  const Result<std::vector<std::string>> names = names_of(folder, kSuffix);
  if (!names) return names.failure();
  std::vector<LibraryFile> result;
  for (const std::string& name : names.value()) {
    const std::string path = shown(fs::path(folder) / (name + std::string(kSuffix)));
    Sources sources;
    const Result<SourceId> source = read_source(sources, path);
    if (!source) return source.failure();
    result.push_back({name, path, sources[source.value()].text});
  }
  return result;
}

Result<std::string> find_in_library(const std::string& word, LibraryPart part) {
  if (word.empty() || word == "-" || word.find_first_of("/.") != std::string::npos) return word;
  std::error_code ignored;
  const bool exists = fs::exists(word, ignored);
  if (exists && !fs::is_directory(word, ignored)) return word;
  const PartOfLibrary& about = kParts[static_cast<std::size_t>(part)];
  const std::string folder =
      about.folder.empty() ? library_folder() : (fs::path(library_folder()) / about.folder).string();
  const Result<std::vector<std::string>> names = names_of(folder, about.suffix);
  if (names && std::binary_search(names.value().begin(), names.value().end(), word))
    return shown(fs::path(folder) / (word + std::string(about.suffix)));
  // Reading a folder says what is wrong.
  if (exists) return word;
  if (!names) return names.failure();
  const std::string_view nearest = nearest_name(word, {names.value().begin(), names.value().end()});
  std::string hint = nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest);
  if (part == LibraryPart::Schedules)
    hint += "\nstave list prints the library";
  else if (nearest.empty())
    hint += fmt::format("; it has {}", fmt::join(names.value(), ", "));
  return Failure{fmt::format("`{}` is no file, and no {} of the library is called so{}", word, about.one, hint)};
}

}  // namespace stave
