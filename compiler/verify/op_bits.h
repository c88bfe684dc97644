// One bit for every op, and the parts of a fused op without a vector: what the checks of a table run on.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op_set.h"

namespace stave {

class OpBits {
 public:
  explicit OpBits(std::uint32_t size) : words_(size / 64 + 1, 0) {}
  bool operator[](std::uint32_t op) const { return (words_[op / 64] >> (op % 64)) & 1; }
  void set(std::uint32_t op) { words_[op / 64] |= std::uint64_t(1) << (op % 64); }
  /// True if first .. first + count - 1 are all set.
  bool all(std::uint32_t first, std::uint32_t count) const {
    std::uint32_t op = first;
    const std::uint32_t end = first + count;
    for (; op < end && op % 64 != 0; ++op)
      if (!(*this)[op]) return false;
    for (; op + 64 <= end; op += 64)
      if (words_[op / 64] != ~std::uint64_t(0)) return false;
    for (; op < end; ++op)
      if (!(*this)[op]) return false;
    return true;
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// The ops that an entry runs: its parts, or itself.
class Parts {
 public:
  explicit Parts(const OpSet& ops) : ops_(ops) {
    begin_.push_back(0);
    for (const OpKind& kind : ops.kinds()) {
      firsts_.push_back(kind.first);
      if (kind.parts.empty()) part_firsts_.push_back(kind.first);
      for (KindId part : kind.parts) part_firsts_.push_back(ops.kinds()[part].first);
      begin_.push_back(static_cast<std::uint32_t>(part_firsts_.size()));
    }
  }

  /// True if `test(part)` holds for every part; stops at the first for which it does not.
  template <class Test>
  bool all(OpId op, Test&& test) const {
    const std::uint32_t kind = ops_.kind_of(op).value;
    const std::uint32_t index = op.value - firsts_[kind];
    for (std::uint32_t i = begin_[kind]; i < begin_[kind + 1]; ++i)
      if (!test(part_firsts_[i] + index)) return false;
    return true;
  }
  template <class Visit>
  void for_each(OpId op, Visit&& visit) const {
    all(op, [&](std::uint32_t part) {
      visit(part);
      return true;
    });
  }

 private:
  const OpSet& ops_;
  std::vector<std::uint32_t> firsts_;
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> part_firsts_;
};

}  // namespace stave
