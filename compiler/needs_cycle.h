// Whether declarations make an op need itself, by itself or by way of others: then no order can run it.
// What an order adds to the needs is verify's.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/evaluate.h"
#include "compiler/schedule.h"
#include "compiler/world.h"

namespace stave {

/// That ops of one kind need ops of another.
struct KindNeed {
  std::uint32_t kind = 0;
  std::uint32_t needed = 0;
  /// Both have the same lists of indices, and what is needed is the op's own number within its kind plus `distance`.
  bool straight = false;
  std::int64_t distance = 0;
};

/// Errors: an op of a cycle of `needs`, or a part of a fused op that needs one that runs after it there; a diagnostic
/// with the declarations, and Stop. Cost: nothing for kinds whose straight needs all lead one way, as those of the
/// training operations do; else O(ops + needs) of the kinds that need each other.
void refuse_cycles(Evaluator& evaluator, const World& world, const std::vector<KindNeed>& kinds,
                   const Rows<Dependency>& needs);

}  // namespace stave
