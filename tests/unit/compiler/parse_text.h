// Parsing a text in a test, and what is said of it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "compiler/diagnostics.h"
#include "compiler/parse.h"
#include "compiler/render.h"
#include "compiler/source.h"

namespace stave {

struct Parsed {
  Sources sources;
  Diagnostics sink;
  std::optional<Ast> ast;

  /// Every diagnostic as one line.
  std::string lines() const { return render_lines(sources, sink); }
};

inline Parsed parse_text(std::string text) {
  Parsed result;
  const SourceId source = result.sources.add("t", std::move(text));
  result.ast = parse(result.sources, source, result.sink);
  return result;
}

}  // namespace stave
