// Library: the folder of schedules that comes with the program, found from any folder, and what their headers say of them.
// Making a table of it is list.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stave {

/// What the comment at the top of a file says.
struct Header {
  /// Its first sentence, with its stop.
  std::string about;
  /// The citation behind `Source:`: up to the first `. ` or `; `, or an empty line of the comment; without its stop.
  std::string source;
};

/// Either part is empty where the comment has none. Line ends of the comment become blanks.
Header read_header(std::string_view text);

/// Lines that hold more than blanks and a comment.
std::size_t lines_of_language(std::string_view text);

struct LibraryFile {
  /// Of the file, without its suffix.
  std::string name;
  std::string path;
  std::string text;
};

/// $STAVE_SCHEDULES; else `schedules` in the nearest folder above the program that has one; else in the folder that the
/// program was built from.
std::string library_folder();

/// The library by rising name. Errors: a folder or a file that cannot be read.
Result<std::vector<LibraryFile>> read_library();

/// The folders of the library: schedules, and the TOML files of clusters and of models.
enum class LibraryPart : std::uint8_t { Schedules, Clusters, Models };

/// The file that a command line means: a word without `/` and `.` that is no file is a name of that part of the library.
/// Errors: no such name, with the nearest one.
Result<std::string> find_in_library(const std::string& word, LibraryPart part);
inline Result<std::string> find_schedule(const std::string& word) {
  return find_in_library(word, LibraryPart::Schedules);
}

}  // namespace stave
