// Values that depend on some of an op's indices: one rational for each combination of those that matter.
// A cost that is the same for all ops of a kind takes one number, one by stage as many as there are stages.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/rational.h"
#include "core/op_set.h"

namespace stave {

struct IndexedValues {
  /// Shape: product of the extents of the indices that matter; one if none does; empty if no value was given.
  std::vector<Rational> values;
  /// Step in `values` for each index of the kind; 0 for those that do not matter.
  std::array<std::uint32_t, kMaxIndices> stride = {};

  bool given() const { return !values.empty(); }
  bool uniform() const { return values.size() == 1; }
  std::size_t at(const std::array<std::uint32_t, kMaxIndices>& index) const {
    std::size_t result = 0;
    for (std::size_t i = 0; i < kMaxIndices; ++i) result += std::size_t(index[i]) * stride[i];
    return result;
  }
  Rational operator[](const OpName& op) const { return values[at(op.index)]; }
};

}  // namespace stave
