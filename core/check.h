// STAVE_CHECK: a condition that only a bug of ours can break. Not for wrong input: that is a Diagnostic or a Result.
#pragma once

namespace stave {

/// Prints the place and the message, asks for a report, and ends the process with status 3.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* message);

}  // namespace stave

#define STAVE_CHECK(condition, message) \
  ((condition) ? static_cast<void>(0) : ::stave::check_failed(__FILE__, __LINE__, #condition, message))
