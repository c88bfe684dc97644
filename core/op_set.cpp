#include "core/op_set.h"

#include "core/check.h"

namespace stave {

bool OpSet::add(OpKind kind) {
  STAVE_CHECK(kind.indices.size() <= kMaxIndices, "an op has too many indices");
  std::uint64_t count = 1;
  for (const OpIndex& index : kind.indices) {
    count *= index.extent;
    if (count > kMaxOps) return false;
  }
  if (count + size_ > kMaxOps) return false;
  kind.first = size_;
  kind.count = static_cast<std::uint32_t>(count);
  firsts_.push_back(size_);
  size_ += kind.count;
  kinds_.push_back(std::move(kind));
  return true;
}

KindId OpSet::find(std::string_view name) const {
  for (std::uint32_t k = 0; k < kinds_.size(); ++k)
    if (kinds_[KindId(k)].name == name) return KindId(k);
  return KindId();
}

KindId OpSet::find(Operation operation) const {
  for (std::uint32_t k = 0; k < kinds_.size(); ++k)
    if (kinds_[KindId(k)].operation == operation) return KindId(k);
  return KindId();
}

OpName OpSet::name(OpId op) const {
  OpName result;
  result.kind = kind_of(op);
  const OpKind& kind = kinds_[result.kind];
  std::uint32_t rest = op.value - kind.first;
  for (std::size_t i = kind.indices.size(); i-- > 0;) {
    result.index[i] = rest % kind.indices[i].extent;
    rest /= kind.indices[i].extent;
  }
  return result;
}

OpId OpSet::id(KindId kind_id, std::span<const std::uint32_t> index) const {
  const OpKind& kind = kinds_[kind_id];
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < kind.indices.size(); ++i) number = number * kind.indices[i].extent + index[i];
  return OpId(kind.first + number);
}

std::vector<OpId> OpSet::parts(OpId op) const {
  const OpKind& whole = kind(op);
  if (whole.parts.empty()) return {op};
  std::vector<OpId> result;
  for (KindId part : whole.parts) result.push_back(OpId(kinds_[part].first + (op.value - whole.first)));
  return result;
}

std::uint32_t OpSet::index(OpId op, IndexRole role) const {
  const OpName taken_apart = name(op);
  const OpKind& kind = kinds_[taken_apart.kind];
  for (std::size_t i = 0; i < kind.indices.size(); ++i)
    if (kind.indices[i].role == role) return taken_apart.index[i];
  return OpId::kNone;
}

std::string OpSet::text(OpId op) const {
  const OpName taken_apart = name(op);
  const OpKind& kind = kinds_[taken_apart.kind];
  std::string result = kind.name + "(";
  bool first = true;
  for (std::size_t i = 0; i < kind.indices.size(); ++i) {
    if (!kind.indices[i].written()) continue;
    if (!first) result += ", ";
    first = false;
    result += std::to_string(taken_apart.index[i]);
  }
  return result + ")";
}

}  // namespace stave
