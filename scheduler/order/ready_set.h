// A set of small numbers that finds its smallest member at once: what a block offers, by priority.
// Insert and erase undo each other exactly, which a heap would not.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace stave {

class ReadySet {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  ReadySet() = default;
  /// Empty, for members 0 .. n - 1.
  explicit ReadySet(std::uint32_t n) {
    do {
      n = (n + 63) / 64;
      levels_.emplace_back(n, 0);
    } while (n > 1);
  }

  void insert(std::uint32_t i) {
    for (std::vector<std::uint64_t>& level : levels_) {
      level[i / 64] |= bit(i);
      i /= 64;
    }
  }
  void erase(std::uint32_t i) {
    for (std::vector<std::uint64_t>& level : levels_) {
      level[i / 64] &= ~bit(i);
      if (level[i / 64] != 0) return;
      i /= 64;
    }
  }
  bool contains(std::uint32_t i) const { return !levels_.empty() && (levels_[0][i / 64] & bit(i)) != 0; }

  /// Smallest member not below `from`, or kNone. Cost: O(log64 n).
  std::uint32_t first(std::uint32_t from = 0) const {
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      if (from / 64 >= levels_[depth].size()) return kNone;
      const std::uint64_t rest = levels_[depth][from / 64] & (~std::uint64_t(0) << (from % 64));
      if (rest == 0) {
        from = from / 64 + 1;
        continue;
      }
      std::uint32_t found = from / 64 * 64 + static_cast<std::uint32_t>(std::countr_zero(rest));
      while (depth-- > 0) found = found * 64 + static_cast<std::uint32_t>(std::countr_zero(levels_[depth][found]));
      return found;
    }
    return kNone;
  }

 private:
  static std::uint64_t bit(std::uint32_t i) { return std::uint64_t(1) << (i % 64); }

  /// levels_[0] has a bit for each member, each further level one for each word below.
  std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace stave
