#include "compiler/diagnostics.h"

#include <utility>

#include "compiler/diagnostic_kinds.h"
#include "core/check.h"

namespace stave {

void Diagnostics::add(Diagnostic diagnostic) {
  STAVE_CHECK(known_kind(diagnostic.kind), "a diagnostic of a kind that diagnostic_kinds.h does not list");
  if (diagnostic.severity == Severity::Error) ++errors_;
  if (all_.size() < kMost)
    all_.push_back(std::move(diagnostic));
  else
    ++dropped_;
}

}  // namespace stave
