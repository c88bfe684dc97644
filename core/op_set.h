// OpSet: the kinds of ops of a schedule, and a dense number for each op with its indices.
// It names ops; what they need, cost and where they run belongs to `Schedule`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/operations.h"

namespace stave {

/// Most indices an op may have.
inline constexpr std::size_t kMaxIndices = 4;
/// Most ops a schedule may have, over all kinds and index values.
inline constexpr std::uint32_t kMaxOps = 1u << 26;

/// The stream whose ops, of one stage, run on all its replicas at once: the reduction of gradients.
inline constexpr std::string_view kReduceStream = "reduce";

/// What an index counts. Only the first three have a meaning to the executor and to tables. Replica is written nowhere:
/// an op of a stage and of no microbatch, where microbatches place the stage on several devices, runs on each of them.
enum class IndexRole : std::uint8_t { Stage, Microbatch, Slice, Device, Other, Replica };

struct OpIndex {
  std::string name;
  IndexRole role = IndexRole::Other;
  /// Values run from 0 to extent - 1.
  std::uint32_t extent = 0;

  /// Whether an author writes its value.
  bool written() const { return role != IndexRole::Replica && (role != IndexRole::Slice || extent != 1); }
};

struct OpKind {
  std::string name;
  Operation operation = Operation::Declared;
  std::vector<OpIndex> indices;
  /// Kinds whose ops this one runs, in order, with its own indices; empty unless fused (B = I + W).
  std::vector<KindId> parts;
  bool optional = false;
  /// Stream it runs on; empty is the compute stream.
  std::string stream;

  /// Number of values of the index that plays `role`; 0 if it has none.
  std::uint32_t extent(IndexRole role) const {
    for (const OpIndex& index : indices)
      if (index.role == role) return index.extent;
    return 0;
  }

  /// Its ops are numbered first .. first + count - 1, the last index fastest. Set by OpSet::add.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// An op taken apart: `index[i]` belongs to `kind.indices[i]`; the rest is 0.
struct OpName {
  KindId kind;
  std::array<std::uint32_t, kMaxIndices> index = {};
};

class OpSet {
 public:
  /// Appends a kind and numbers its ops. False, and nothing added, if there would be more than kMaxOps.
  bool add(OpKind kind);

  const IdVector<KindId, OpKind>& kinds() const { return kinds_; }
  /// One more than the largest op number. Not every op need exist: see Schedule.
  std::uint32_t size() const { return size_; }

  /// The kind called `name`; not valid if there is none.
  KindId find(std::string_view name) const;
  /// The kind of a known operation; not valid if the schedule has none.
  KindId find(Operation operation) const;

  KindId kind_of(OpId op) const {
    std::uint32_t k = 0;
    while (k + 1 < kinds_.size() && op.value >= firsts_[k + 1]) ++k;
    return KindId(k);
  }
  const OpKind& kind(OpId op) const { return kinds_[kind_of(op)]; }
  OpName name(OpId op) const;
  /// The op of `kind` with these indices, one for each of the kind, each below its extent.
  OpId id(KindId kind, std::span<const std::uint32_t> index) const;
  /// The ops that `op` runs: its parts, or itself.
  std::vector<OpId> parts(OpId op) const;

  /// The value of the index that plays `role`, or Id::kNone if the kind has none.
  std::uint32_t index(OpId op, IndexRole role) const;
  std::uint32_t stage(OpId op) const { return index(op, IndexRole::Stage); }
  std::uint32_t microbatch(OpId op) const { return index(op, IndexRole::Microbatch); }

  /// As an author writes it: "F(0, 3)"; a slice index of extent 1 is left out, and so is that of a replica.
  std::string text(OpId op) const;

 private:
  IdVector<KindId, OpKind> kinds_;
  std::vector<std::uint32_t> firsts_;
  std::uint32_t size_ = 0;
};

}  // namespace stave
