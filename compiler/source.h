// Sources: the texts that are compiled, and places in them.
// Reading files and guarding their size and encoding is `read_source`; parsing them is parse.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace stave {

using SourceId = Id<struct SourceTag>;

/// Bytes begin .. end - 1 of one source.
struct Span {
  SourceId source;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool valid() const { return source.valid(); }
};

/// A file, standard input ("<stdin>") or an argument of the command line ("--cost"), with its text.
struct Source {
  /// As the user named it.
  std::string name;
  std::string text;
  /// Byte at which each line begins.
  std::vector<std::uint32_t> lines;
};

/// Line and column from 1; columns count code points.
struct LineColumn {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

class Sources {
 public:
  /// Texts are at most 4 GiB less one byte.
  SourceId add(std::string name, std::string text);
  const Source& operator[](SourceId id) const { return sources_[id]; }
  std::size_t size() const { return sources_.size(); }
  LineColumn place(SourceId id, std::uint32_t offset) const;
  std::string_view text(Span span) const;

 private:
  IdVector<SourceId, Source> sources_;
};

/// Most bytes of a file that is read.
inline constexpr std::size_t kMaxSourceBytes = std::size_t(1) << 30;

/// Reads a file, or standard input for the path "-", and adds it. Its text is taken as it is: what it must look like is
/// said by the step that parses it. Errors: no such file, not readable, a directory, more than kMaxSourceBytes.
Result<SourceId> read_source(Sources& sources, const std::string& path);

/// The same for a file that another one uses: a regular file of at most `most` bytes, and no standard input.
Result<SourceId> read_used_source(Sources& sources, const std::string& path, std::size_t most);

}  // namespace stave
