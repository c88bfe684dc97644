// Golden files: a failing or passing input with its command and its whole output in comment lines.
// The test runner checks them against the program; `explain` shows them to authors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stave {

/// A golden file taken apart. Its comment lines, which may stand anywhere:
///
///     # RUN: stave check %s P=4    a line of the shell script that is run; %s is this file, %t a folder of its own
///     # EXIT: 1                    the script's exit status; 0 without this line
///     # KIND: op-twice             the kind of diagnostic that it shows to `explain`
///     # ABOUT: ...                 what the kind means, a line of prose
///     # REPAIR 9: ...              what line 9 should be; several are lines in its place, one without text removes it
///     #> ...                       a line of the standard output
///     #! ...                       a line of the standard error
struct GoldenFile {
  std::vector<std::string> run;
  int exit = 0;
  std::string kind;
  std::vector<std::string> about;
  std::vector<std::pair<std::size_t, std::string>> repairs;
  std::string out;
  std::string err;
  /// Every other line, with its line end.
  std::string body;
};

/// Takes a golden file apart. Errors: none; what is not one of the lines above is body.
GoldenFile read_golden(std::string_view text);

/// The text of `golden` with its repairs made: the body alone, its lines counted as in the file.
///
/// The body must come before all comment lines, as in every file with a KIND.
std::string repaired(const GoldenFile& golden);

/// `text` without its `#>` and `#!` lines, and then with those of `out` and `err` at its end.
std::string with_output(std::string_view text, std::string_view out, std::string_view err);

}  // namespace stave
