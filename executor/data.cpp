#include "executor/data.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/program_file.h"
#include "executor/random.h"

namespace stave {

Result<Corpus> Corpus::load(std::span<const std::string> paths, std::size_t least) {
  if (paths.empty()) return Failure{"no file to train on was given"};
  std::vector<std::uint8_t> bytes;
  std::string names;
  for (const std::string& path : paths) {
    if (!names.empty()) names += ", ";
    names += "`" + path + "`";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
    if (!file) return Failure{"cannot read `" + path + "`: " + std::strerror(errno)};
    std::array<std::uint8_t, 65536> chunk;
    std::size_t got = 0;
    while ((got = std::fread(chunk.data(), 1, chunk.size(), file.get())) > 0) {
      if (bytes.size() + got > kMaxCorpusBytes)
        return Failure{"`" + path + "`: more than " + std::to_string(kMaxCorpusBytes) + " bytes of text to train on"};
      bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
    }
    if (std::ferror(file.get()) != 0) return Failure{"cannot read `" + path + "`: " + std::strerror(errno)};
  }
  if (bytes.size() < least)
    return Failure{names + ": " + std::to_string(bytes.size()) +
                   " bytes are too few to train on; the sequence length " + "needs at least " + std::to_string(least)};
  return Corpus(std::move(bytes));
}

std::span<const std::uint8_t> Corpus::window(std::uint64_t seed, std::uint64_t step, std::uint32_t microbatch,
                                             std::uint32_t row, std::size_t length) const {
  STAVE_CHECK(length <= bytes_.size(), "a window longer than the text");
  const std::uint64_t number = (static_cast<std::uint64_t>(microbatch) << 32) | row;
  const std::size_t first = mix(mix(seed, step), number) % (bytes_.size() - length + 1);
  return std::span<const std::uint8_t>(bytes_).subspan(first, length);
}

std::uint64_t Corpus::hash() const {
  return hash_of({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
}

double Corpus::byte_entropy() const {
  std::array<std::uint64_t, 256> counts = {};
  for (std::uint8_t byte : bytes_) ++counts[byte];
  double entropy = 0;
  for (std::uint64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(bytes_.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

}  // namespace stave
