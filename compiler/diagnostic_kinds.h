// The kinds of diagnostics: the one list of their stable names, each with what it means in one line.
// A kind is shown in brackets behind a message; `stave explain KIND` shows a file that fails so, and its repair.
#pragma once

#include <string_view>

namespace stave {

struct Kind {
  std::string_view name;
  std::string_view meaning;
};

/// Sorted by the step that finds them, then by name.
inline constexpr Kind kKinds[] = {
    // Reading the text.
    {"empty-file", "there is nothing in the file but blanks and comments"},
    {"file-too-large", "more than 1 MiB of text outside `table` bodies"},
    {"invalid-utf8", "bytes that are no UTF-8 text"},
    {"misplaced", "something that is right in another place of a file"},
    {"nested-too-deep", "brackets or expressions inside each other more than 200 deep"},
    {"not-text", "a binary file"},
    {"number-too-large", "a number that does not fit into 64 bits"},
    {"reserved-word", "a word of the language where a name of your own is needed"},
    {"syntax", "text that the grammar does not allow"},
    {"table-cell", "a cell of a `table` that names no op"},
    {"table-row", "a row of a `table` that does not begin with a device and a colon"},
    {"unclosed-bracket", "a bracket that is never closed, or closed by one of another shape"},
    {"unclosed-string", "a text in quotes that does not end on its line"},
    {"unexpected-character", "a character that the language does not use"},
    {"unknown-keyword", "a word that begins no statement or declaration"},
    {"unopened-bracket", "a closing bracket that closes nothing"},
    // Names, and what every file needs.
    {"argument-count", "too many or too few values or indices"},
    {"argument-kind", "a metric asked of something else than it speaks of"},
    {"endless-call", "a function that calls itself, or values that need each other"},
    {"freeze-target", "a freeze ratio of something else than W"},
    {"function-name", "the name of a function without its values"},
    {"fused-op", "a part that a fused op cannot have"},
    {"given-twice", "something that a file says twice"},
    {"missing", "something that every schedule says, and this one does not"},
    {"name-hides", "a new name that hides one in view"},
    {"not-a-function", "a value that is called like a function"},
    {"not-a-name", "something else where a new name is needed"},
    {"not-an-op", "a value where an op is needed"},
    {"not-yet", "a part of the language that this version does not support"},
    {"op-as-value", "an op where a value is needed"},
    {"some-slots", "a block of which some statements have a slot and some have none"},
    {"unknown-name", "a name that nothing has"},
    {"use-cycle", "files that use each other"},
    {"use-file", "a file that is used and cannot be read"},
    // Values.
    {"bad-index", "a list of indices with an element that can be none"},
    {"circular", "a setting that depends on itself"},
    {"count", "a number of devices, stages, microbatches or slices that is 0 or too large"},
    {"division-by-zero", "a division by zero"},
    {"empty-list", "the least or the greatest of no values"},
    {"freeze-ratio", "a freeze ratio below 0 or above 1"},
    {"index-outside", "an index outside its list"},
    {"list-too-long", "a list too long to be written out"},
    {"needs-itself", "an op that needs itself, by itself or by way of others"},
    {"negative-cost", "a cost below 0"},
    {"negative-memory", "weights that take less than nothing"},
    {"negative-repeat", "a negative number of turns"},
    {"no-cost", "an op without a cost"},
    {"no-device", "an op of which nothing says where it runs"},
    {"no-next", "a `next` where nothing is left"},
    {"no-order", "a device without an order"},
    {"not-one-number", "the letter of an op whose cost is not one number"},
    {"not-whole", "an index or a count that is not whole"},
    {"overflow", "a number that does not fit into 64 bits"},
    {"require", "parameters that a `require` refuses"},
    {"same-slot", "two ops of a list in one slot"},
    {"route", "a route that visits a stage twice or none at all, or a stage that no route visits"},
    {"several-devices", "the one device of a stage that has several"},
    {"sizes", "sizes of stages, microbatches or slices that are none, or do not fit each other"},
    {"too-many", "more ops, dependencies, orders or files than a schedule may have"},
    {"too-many-steps", "loops or functions that run too long"},
    {"wrong-kind", "a number, a condition or a list where another of them is needed"},
    // Ordering.
    {"cost-overflow", "costs that cannot be counted in whole ticks"},
    {"limit-impossible", "a `limit` that no order of the device can keep"},
    {"limit-stops-list", "a list that waits for its own `limit` for ever"},
    // Expectations.
    {"false-expect", "an `expect` that does not hold"},
    // Reading a CSV table.
    {"csv-blank-line", "a blank line in a CSV table, which would be one more device"},
    {"csv-byte-order-mark", "a CSV table that begins with a byte-order mark"},
    {"csv-cell", "a cell of a CSV table that is no op of PyTorch's compute-only format"},
    {"csv-communication", "a CSV table with sends and receives"},
    {"csv-old-letters", "a CSV table with the letters of PyTorch before late 2024"},
    {"csv-stage", "a stage in the rows of two devices of a CSV table, or in none"},
    // Reading costs, clusters and models.
    {"cluster-small", "a cluster with fewer accelerators than the schedule and the model take"},
    {"costs-mismatch", "a costs file that does not fit the schedule"},
    {"layers-left-over", "a model whose layers do not divide over the stages"},
    {"memory-capacity", "a device that must hold more than its memory"},
    {"no-path", "two devices between which a cluster has no link"},
    {"no-peak", "a device without a rate for the precision of the model"},
    {"toml-key", "a key that a TOML table does not have"},
    {"toml-missing", "a key that a TOML table needs"},
    {"toml-name", "a name in a TOML file that nothing there has"},
    {"toml-syntax", "text that is no TOML"},
    {"toml-type", "a TOML value of another type than its key takes"},
    {"toml-unit", "a quantity without a unit, or with one that is not its own"},
    {"toml-value", "a TOML value outside its range"},
    // Proving the table and its program.
    {"backward-before-forward", "a backward that stands before its own forward on a device"},
    {"deadlock", "a program whose sends and receives wait for each other"},
    {"foreign-op", "an op in the order that the schedule does not have"},
    {"idle-device", "a device on which no op must run"},
    {"missing-op", "an op that no device runs"},
    {"order-cycle", "devices whose orders wait for each other"},
    {"overlap-needs", "an overlapped pair of which one op needs the other"},
    {"repeated-op", "an op that runs twice"},
    {"runs-too-early", "an op that stands before one of its device that it needs"},
    {"unreduced", "an optimizer step of a stage with replicas whose gradients are not reduced"},
    {"version-lost", "a version of weights that is read and no longer kept"},
    {"wrong-device", "an op on another device than the one it is placed on"},
};

constexpr bool known_kind(std::string_view name) {
  for (const Kind& kind : kKinds)
    if (kind.name == name) return true;
  return false;
}

}  // namespace stave
