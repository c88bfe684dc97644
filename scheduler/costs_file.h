// A costs file: measured times for a schedule, as `--costs` takes them. TOML: the names of `cost` lines, each with one
// value, with one a stage, or with a list a stage of one a microbatch; and the unit of time.
//
//     unit = "us"
//     F = [18522, 18610, 18498, 19407]
//     B = 27423
//     message = 601
//     "F with B" = 44000
#pragma once

#include <memory>
#include <optional>

#include "compiler/diagnostics.h"
#include "compiler/prices.h"
#include "compiler/source.h"

namespace stave {

/// The prices of a costs file. They are a whole set: the schedule's own cost of an op that the file does not name is
/// gone, unless it is 0 everywhere, and one that runs then has no cost, which is an error of the schedule's. Over the
/// prices of a model, `below`, they replace what they name, in its unit.
///
/// Errors: none, with diagnostics: no TOML, an unknown unit, a value that is no number, negative or not finite, a file
/// without a cost. What must fit the schedule (names, how many stages) is said when they are applied.
std::shared_ptr<const Prices> read_costs_file(const Sources& sources, SourceId source, Diagnostics& sink,
                                              std::shared_ptr<const Prices> below = nullptr);

}  // namespace stave
