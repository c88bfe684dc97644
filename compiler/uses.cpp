#include "compiler/uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "compiler/library.h"
#include "compiler/nearest.h"
#include "compiler/parse.h"
#include "core/check.h"

namespace stave {

namespace {

struct Library {
  std::string_view name;
  const char* file;
  const char* const& text;
};

constexpr std::array<Library, 2> kLibraries = {{
    {"training", kTrainingName, kTrainingText},
    {"inference", kInferenceName, kInferenceText},
}};

/// One name for a file, whatever the path to it; empty if there is no such file.
std::string identity(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path result = std::filesystem::canonical(path, error);
  return error ? std::string() : result.string();
}

class Uses {
 public:
  Uses(Sources& sources, Diagnostics& sink) : sources_(sources), sink_(sink) {}

  void all(const Ast& file) {
    const std::string name = sources_[file.source].name;
    open_.push_back({identity(name), name, {}});
    uses_of(file);
  }

  std::vector<BroughtIn> take() {
    if (libraries_.empty()) libraries_.push_back(bring_in_library(sources_, "training"));
    for (BroughtIn& each : files_) libraries_.push_back(std::move(each));
    return std::move(libraries_);
  }

 private:
  /// A file whose uses are being read, the schedule's first.
  struct Open {
    std::string identity;
    std::string name;
    Span use;
  };

  void uses_of(const Ast& ast) {
    for (const Use& use : ast.uses) {
      if (use.is_file) {
        bring_in_file(use);
      } else {
        library(use);
      }
    }
  }

  void error(std::string_view kind, Span span, std::string message, std::string fix = "") {
    Diagnostic diagnostic;
    diagnostic.kind = kind;
    diagnostic.message = std::move(message);
    diagnostic.primary.span = span;
    diagnostic.fix = std::move(fix);
    sink_.add(std::move(diagnostic));
  }

  void library(const Use& use) {
    const auto same = [&](const auto& each) { return std::string_view(each.library) == use.name; };
    if (std::any_of(libraries_.begin(), libraries_.end(), same)) return;
    std::vector<std::string_view> known;
    for (const Library& each : kLibraries) known.push_back(each.name);
    if (std::find(known.begin(), known.end(), use.name) == known.end()) {
      const std::string_view nearest = nearest_name(use.name, known);
      error("unknown-name", use.span, fmt::format("there are no ops called `{}`", use.name),
            nearest.empty() ? "there are `use training` and `use inference`; a file is named in quotes"
                            : fmt::format("did you mean `use {}`?", nearest));
      return;
    }
    libraries_.push_back(bring_in_library(sources_, use.name));
    libraries_.back().use = use.span;
    sink_.used_at(libraries_.back().ast.source, use.span);
  }

  void bring_in_file(const Use& use) {
    const std::filesystem::path path = std::filesystem::path(open_.back().name).parent_path() / use.name;
    const std::string file = identity(path);
    const auto again = std::find_if(open_.begin(), open_.end(), [&](const Open& each) {
      return !file.empty() && each.identity == file;
    });
    if (again != open_.end()) {
      cycle(use, static_cast<std::size_t>(again - open_.begin()));
      return;
    }
    if (!file.empty()) {
      if (std::find(done_.begin(), done_.end(), file) != done_.end()) return;
      done_.push_back(file);
    }
    if (count_ == kMaxUsedFiles) {
      error("too-many", use.span, fmt::format("more than {} files are used", kMaxUsedFiles));
      return;
    }
    ++count_;
    const Result<SourceId> source = read_used_source(sources_, path.string(), kMaxUsedBytes);
    if (!source) {
      error("use-file", use.span, source.failure().message,
            file.empty() && !std::filesystem::path(use.name).is_absolute()
                ? "a path leads from the folder of the file in which it stands"
                : "");
      return;
    }
    sink_.used_at(source.value(), use.span);
    std::optional<Ast> ast = parse(sources_, source.value(), sink_);
    if (!ast) return;
    open_.push_back({file, path.string(), use.span});
    uses_of(*ast);
    open_.pop_back();
    files_.push_back({std::move(*ast), use.span, ""});
  }

  /// Says that the file that says `use` is used by the one it names, which is open_[first].
  void cycle(const Use& use, std::size_t first) {
    Diagnostic diagnostic;
    diagnostic.kind = "use-cycle";
    diagnostic.message = fmt::format("`{}` uses itself", open_[first].name);
    if (first + 1 < open_.size()) {
      diagnostic.message = fmt::format("`{}` uses `{}`", open_[first].name, open_[first + 1].name);
      for (std::size_t i = first + 2; i < open_.size(); ++i)
        diagnostic.message += fmt::format(", which uses `{}`", open_[i].name);
      diagnostic.message += fmt::format(", which uses `{}`", open_[first].name);
    }
    diagnostic.primary = {use.span, "and so on, without end"};
    for (std::size_t i = first + 1; i < open_.size(); ++i) diagnostic.labels.push_back({open_[i].use, "used here"});
    sink_.add(std::move(diagnostic));
  }

  Sources& sources_;
  Diagnostics& sink_;
  std::vector<Open> open_;
  /// Identities of the files that were met.
  std::vector<std::string> done_;
  std::size_t count_ = 0;
  std::vector<BroughtIn> libraries_;
  std::vector<BroughtIn> files_;
};

}  // namespace

BroughtIn bring_in_library(Sources& sources, const std::string& name) {
  for (const Library& each : kLibraries) {
    if (each.name != name) continue;
    Diagnostics sink;
    std::optional<Ast> ast = parse(sources, sources.add(each.file, each.text), sink);
    STAVE_CHECK(ast.has_value(), "the library's declarations cannot be read");
    return {std::move(*ast), Span(), name};
  }
  STAVE_CHECK(false, "a library that does not exist");
  return {};
}

std::optional<std::vector<BroughtIn>> bring_in(Sources& sources, const Ast& file, Diagnostics& sink) {
  const std::size_t before = sink.errors();
  Uses uses(sources, sink);
  uses.all(file);
  if (sink.errors() > before) return std::nullopt;
  return uses.take();
}

}  // namespace stave
