#include "compiler/diagnostics.h"

#include <algorithm>
#include <utility>

#include "compiler/diagnostic_kinds.h"
#include "core/check.h"

namespace stave {

void Diagnostics::add(Diagnostic diagnostic) {
  STAVE_CHECK(known_kind(diagnostic.kind), "a diagnostic of a kind that diagnostic_kinds.h does not list");
  for (const UsedAt& each : uses_) {
    if (!diagnostic.primary.span.valid() || diagnostic.primary.span.source != each.source) continue;
    const bool said = std::any_of(diagnostic.labels.begin(), diagnostic.labels.end(), [&](const Label& label) {
      return label.span.source == each.use.source && label.span.begin == each.use.begin;
    });
    if (!said) diagnostic.labels.push_back({each.use, "used here"});
    break;
  }
  if (diagnostic.severity == Severity::Error) ++errors_;
  if (all_.size() < kMost)
    all_.push_back(std::move(diagnostic));
  else
    ++dropped_;
}

}  // namespace stave
