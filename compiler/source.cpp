#include "compiler/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace stave {

namespace {

/// Closes a file of the system when it goes out of scope; standard input stays open.
struct OpenFile {
  int number = -1;
  bool keep = false;
  OpenFile(int n, bool k) : number(n), keep(k) {}
  ~OpenFile() {
    if (number >= 0 && !keep) ::close(number);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
};

std::string reason() { return std::strerror(errno); }

/// Reads an open file to its end. Errors: as of read_source.
Result<SourceId> read_open(Sources& sources, int file, const std::string& name, std::size_t most, bool regular) {
  if (file < 0) return Failure{"cannot read `" + name + "`: " + reason()};
  struct stat about = {};
  if (::fstat(file, &about) != 0) return Failure{"cannot read `" + name + "`: " + reason()};
  if (S_ISDIR(about.st_mode)) return Failure{"cannot read `" + name + "`: it is a directory"};
  if (regular && !S_ISREG(about.st_mode)) return Failure{"cannot read `" + name + "`: it is no regular file"};

  std::string text;
  std::size_t size = 0;
  if (S_ISREG(about.st_mode) && about.st_size >= 0)
    text.resize(std::min<std::size_t>(static_cast<std::size_t>(about.st_size), most) + 1);
  for (;;) {
    if (size == text.size()) text.resize(std::min(std::max<std::size_t>(2 * size, 1u << 16), most + 1));
    const ssize_t got = ::read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure{"cannot read `" + name + "`: " + reason()};
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > most) return Failure{"cannot read `" + name + "`: it has more than " + std::to_string(most) + " bytes"};
  }
  text.resize(size);
  return sources.add(name, std::move(text));
}

}  // namespace

SourceId Sources::add(std::string name, std::string text) {
  STAVE_CHECK(text.size() < UINT32_MAX, "a source of 4 GiB or more");
  Source source;
  source.name = std::move(name);
  source.text = std::move(text);
  source.lines.reserve(static_cast<std::size_t>(std::count(source.text.begin(), source.text.end(), '\n')) + 1);
  source.lines.push_back(0);
  const char* const begin = source.text.data();
  const char* const end = begin + source.text.size();
  for (const char* at = begin; at != end;) {
    const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    if (found == nullptr) break;
    at = static_cast<const char*>(found) + 1;
    source.lines.push_back(static_cast<std::uint32_t>(at - begin));
  }
  return sources_.push_back(std::move(source));
}

LineColumn Sources::place(SourceId id, std::uint32_t offset) const {
  const Source& source = sources_[id];
  offset = std::min(offset, static_cast<std::uint32_t>(source.text.size()));
  const auto after = std::upper_bound(source.lines.begin(), source.lines.end(), offset);
  LineColumn result;
  result.line = static_cast<std::uint32_t>(after - source.lines.begin());
  for (std::uint32_t i = *(after - 1); i < offset; ++i)
    if ((static_cast<unsigned char>(source.text[i]) & 0xC0) != 0x80) ++result.column;
  return result;
}

std::string_view Sources::text(Span span) const {
  const std::string_view all = sources_[span.source].text;
  const std::size_t begin = std::min<std::size_t>(span.begin, all.size());
  const std::size_t end = std::min<std::size_t>(span.end, all.size());
  return all.substr(begin, end > begin ? end - begin : 0);
}

Result<SourceId> read_source(Sources& sources, const std::string& path) {
  const bool from_stdin = path == "-";
  const OpenFile file(from_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC), from_stdin);
  return read_open(sources, file.number, from_stdin ? "<stdin>" : path, kMaxSourceBytes, false);
}

Result<SourceId> read_used_source(Sources& sources, const std::string& path, std::size_t most) {
  // A pipe without a writer is refused, and not waited for.
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), false);
  return read_open(sources, file.number, path, most, true);
}

}  // namespace stave
