// Corpus: the bytes a model trains on, and the batch that belongs to a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace stave {

/// Most bytes of text that a run reads.
inline constexpr std::size_t kMaxCorpusBytes = std::size_t{1} << 30;

class Corpus {
 public:
  Corpus() = default;
  explicit Corpus(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  /// Reads the files one after another. Errors: a file that cannot be read, more than kMaxCorpusBytes in all, fewer
  /// than `least` bytes (sequence length + 1) in all; each names the file and both sizes.
  static Result<Corpus> load(std::span<const std::string> paths, std::size_t least);

  std::size_t size() const { return bytes_.size(); }

  /// `length` bytes for one row of a microbatch, from a place drawn by all the numbers given: the same on every run and
  /// under every schedule. `length` must not exceed size().
  std::span<const std::uint8_t> window(std::uint64_t seed, std::uint64_t step, std::uint32_t microbatch,
                                       std::uint32_t row, std::size_t length) const;

  /// FNV-1a of all bytes.
  std::uint64_t hash() const;

  /// Entropy of its single bytes, in nats: the loss of the best model that ignores its context.
  double byte_entropy() const;

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace stave
