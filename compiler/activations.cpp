#include "compiler/activations.h"

#include <algorithm>

#include "core/check.h"

namespace stave {

namespace {

constexpr std::array<IndexRole, 3> kRoles = {IndexRole::Stage, IndexRole::Microbatch, IndexRole::Slice};

}  // namespace

Activations::Activations(const OpSet& ops) : ops_(ops), kinds_(ops.kinds().size()) {
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    const OpKind& kind = ops.kinds()[KindId(k)];
    Kind& mine = kinds_[k];
    mine.first = kind.first;
    const auto add = [&](Operation operation) {
      mine.takes = mine.takes || info(operation).takes_activation;
      mine.gives = mine.gives || info(operation).gives_activation;
      mine.uses = mine.uses || info(operation).uses_activation;
    };
    add(kind.operation);
    for (KindId part : kind.parts) add(ops.kinds()[part].operation);
    if (kind.extent(IndexRole::Stage) == 0 || kind.extent(IndexRole::Microbatch) == 0)
      mine = Kind{.first = kind.first};
    if (!mine.uses) continue;
    for (std::size_t i = 0; i < kRoles.size(); ++i) extent_[i] = std::max(extent_[i], kind.extent(kRoles[i]));
  }
  const std::uint64_t triples = std::uint64_t(extent_[0]) * extent_[1] * extent_[2];
  STAVE_CHECK(triples < kNone, "too many stages, microbatches and slices");
  triples_ = static_cast<std::uint32_t>(triples);
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    const OpKind& kind = ops.kinds()[KindId(k)];
    if (!kinds_[k].uses || kind.count != triples_) continue;
    // The last index runs fastest, so the same roles in the same order mean the same numbers.
    std::size_t next = 0;
    bool in_order = true;
    for (const OpIndex& index : kind.indices) {
      while (next < kRoles.size() && kRoles[next] != index.role) ++next;
      in_order = in_order && next < kRoles.size();
      ++next;
    }
    kinds_[k].direct = in_order;
  }
}

std::uint32_t Activations::taken_apart(OpId op) const {
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < kRoles.size(); ++i) {
    const std::uint32_t index = ops_.index(op, kRoles[i]);
    result = result * extent_[i] + (index == OpId::kNone ? 0 : index);
  }
  return result;
}

}  // namespace stave
