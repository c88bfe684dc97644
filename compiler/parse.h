// From text to Ast. ANTLR is seen by parse.cpp alone; the guards before it and the reader of table bodies are files of
// their own, since what they accept may be hostile or very large.
#pragma once

#include <optional>

#include "compiler/ast.h"
#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

/// The Ast of a `.sched` file; none if there are errors, which are in `sink`.
/// Outside `table` bodies at most 1 MiB; brackets and rules at most 200 deep; valid UTF-8.
std::optional<Ast> parse(const Sources& sources, SourceId source, Diagnostics& sink);

/// The same, added to `into`, which keeps what it has; its name and source become those of the file. False after errors.
bool parse_more(const Sources& sources, SourceId source, Ast& into, Diagnostics& sink);

/// The value lines of one `--cost` argument: `F=18522,I=18086/3,message=601`. Their expressions are added to `into`,
/// the Ast of the schedule they override, so that they see its names.
std::optional<std::vector<ValueLine>> parse_costs(const Sources& sources, SourceId source, Ast& into,
                                                  Diagnostics& sink);

/// The value of a `NAME=VALUE` argument: an expression without names (`4`, `1/2`, `[3, 2]`), added to `into`.
std::optional<ExprId> parse_value(const Sources& sources, SourceId source, Ast& into, Diagnostics& sink);

}  // namespace stave
