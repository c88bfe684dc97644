// The Program's file: a Program as text, so that it can be run where nothing compiles a schedule. Sections by name, each
// with its count and its numbers; words are payloads, kinds of ops, indices and streams.
//
//   stave-program 1
//   payloads 2 "" activation
//   kinds 1
//   F forward required "" parts 0 indices 2 s stage 4 m microbatch 8
//   ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/program.h"
#include "core/result.h"

namespace stave {

/// Begins every such file.
inline constexpr std::string_view kProgramMagic = "stave-program";
inline constexpr std::uint32_t kProgramVersion = 1;

/// Cost: O(nodes + waits), some ten bytes a number.
std::string write_program(const Program& program);

/// Errors, with the line: another kind of file or version; a word or number where another is due; a count that the rest
/// of the file cannot hold (nothing is allocated for it); an op that no kind has. What the numbers say of each other is
/// checked by whoever uses the Program (make_plan). Cost: O(size).
Result<Program> read_program(std::string_view text);

/// FNV-1a of a text: ranks compare it to know that they run the same.
std::uint64_t hash_of(std::string_view text);

}  // namespace stave
