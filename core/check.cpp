#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace stave {

void check_failed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr,
               "stave: internal error: %s\n  %s:%d: %s\n"
               "This is a bug of stave, not of your input. Please report it with the command and the files used.\n",
               message, file, line, condition);
  std::fflush(nullptr);
  std::_Exit(3);
}

}  // namespace stave
