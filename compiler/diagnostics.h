// Diagnostics: what is wrong with a schedule, where, and why. A step adds them to a sink and goes on.
// How they are printed is render.h; the list of kinds is diagnostic_kinds.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/source.h"

namespace stave {

enum class Severity : std::uint8_t { Error, Warning, Note };

/// A range of the source with words of its own.
struct Label {
  Span span;
  std::string text;
};

struct Diagnostic {
  Severity severity = Severity::Error;
  /// Stable name from diagnostic_kinds.h: "backward-before-forward".
  std::string_view kind;
  std::string message;
  /// The smallest range that is wrong. Without a valid span the diagnostic has no place in a file.
  Label primary;
  std::vector<Label> labels;
  std::vector<std::string> notes;
  /// How to mend it, if that is known.
  std::string fix;
};

class Diagnostics {
 public:
  /// Kept and printed at most; the rest is counted.
  static constexpr std::size_t kMost = 20;

  /// What is wrong in a file that `used_at` knows gets a label that says where it is used.
  void add(Diagnostic diagnostic);
  /// `source` is brought in by the `use` at `use`.
  void used_at(SourceId source, Span use) { uses_.push_back({source, use}); }
  bool has_errors() const { return errors_ > 0; }
  std::size_t errors() const { return errors_; }
  std::size_t dropped() const { return dropped_; }
  const std::vector<Diagnostic>& all() const { return all_; }

 private:
  struct UsedAt {
    SourceId source;
    Span use;
  };

  std::vector<Diagnostic> all_;
  std::vector<UsedAt> uses_;
  std::size_t errors_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace stave
