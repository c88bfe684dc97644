// TokenSpans: which tokens of the model's sequence each microbatch has, and which of them each of its slices.
// Sizes that a schedule gives decide by their ratio: its tokens are counted in what the author likes, thousands say.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "executor/partition.h"

namespace stave {

/// The tokens of a slice in each row of its microbatch.
struct TokenSpan {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  /// Whether another slice of the microbatch comes after it.
  bool has_later = false;
  friend auto operator<=>(const TokenSpan&, const TokenSpan&) = default;
};

class TokenSpans {
 public:
  TokenSpans() = default;
  /// A microbatch of the greatest size has all `sequence` tokens, and every slice at least one. Where sizes are given for
  /// the slices of each microbatch alone, its own is their sum.
  /// Errors: more slices than tokens. Cost: O(microbatches * slices).
  static Result<TokenSpans> make(std::uint32_t sequence, const Partition& partition);

  const TokenSpan& at(std::uint32_t microbatch, std::uint32_t slice) const {
    return spans_[first_[microbatch] + slice];
  }
  /// Tokens of a row of a microbatch.
  std::uint32_t length(std::uint32_t microbatch) const { return length_[microbatch]; }
  /// Most slices of a microbatch.
  std::uint32_t slices() const { return slices_; }
  /// Sum of the lengths of all microbatches.
  std::uint64_t all_tokens() const { return all_tokens_; }
  /// Every different span once, the longest among them.
  const std::vector<TokenSpan>& different() const { return different_; }

 private:
  std::uint32_t slices_ = 1;
  /// Those of one microbatch after another, those that are cut alike once; by microbatch, where its own begin.
  std::vector<TokenSpan> spans_;
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> length_;
  std::uint64_t all_tokens_ = 0;
  std::vector<TokenSpan> different_;
};

}  // namespace stave
