// Which ops take and which give back the activations of a (stage, microbatch, slice), and a dense number for the
// triple. Says nothing of bytes (that is `memory`) and nothing of when (that is the order).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/op_set.h"

namespace stave {

class Activations {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  explicit Activations(const OpSet& ops);

  /// One more than the largest number of a triple.
  std::uint32_t triples() const { return triples_; }
  /// What an op does with activations; the rest is false where it works on none.
  struct Use {
    std::uint32_t triple = kNone;
    bool takes = false;
    bool gives = false;
  };
  Use of(OpId op) const {
    const Kind& kind = kinds_[ops_.kind_of(op).value];
    return {kind.direct ? op.value - kind.first : kind.uses ? taken_apart(op) : kNone, kind.takes, kind.gives};
  }
  /// The triple whose activations `op` works on, or kNone. Cost: a few ns where the kinds have the same indices.
  std::uint32_t triple(OpId op) const { return of(op).triple; }
  /// Held from the start of an op that takes them ...
  bool takes(OpId op) const { return kinds_[ops_.kind_of(op).value].takes; }
  /// ... to the end of one that gives them back.
  bool gives(OpId op) const { return kinds_[ops_.kind_of(op).value].gives; }

 private:
  struct Kind {
    std::uint32_t first = 0;
    bool takes = false;
    bool gives = false;
    /// Has a stage and a microbatch, and is one of the operations that touch activations.
    bool uses = false;
    /// Its ops are numbered like the triples.
    bool direct = false;
  };

  std::uint32_t taken_apart(OpId op) const;

  const OpSet& ops_;
  std::vector<Kind> kinds_;
  /// Extents of stage, microbatch and slice, over all kinds that use activations.
  std::array<std::uint32_t, 3> extent_ = {1, 1, 1};
  std::uint32_t triples_ = 0;
};

}  // namespace stave
