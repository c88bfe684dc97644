// What the ops of a schedule take and give back under its `limit` lines, in whole parts of what each line counts.
// How the greedy order keeps a limit is order/limits.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/schedule.h"
#include "core/op_set.h"
#include "scheduler/costs.h"

namespace stave {

struct LimitSizes {
  /// By kind.
  std::vector<KindTicks> taken;
  std::vector<KindTicks> given;
  /// By device; none without a limit.
  std::vector<std::optional<std::int64_t>> most;

  /// Some device has a limit.
  bool any() const;
  std::int64_t taken_by(const OpSet& ops, OpId op) const { return of(taken, ops, op); }
  std::int64_t given_by(const OpSet& ops, OpId op) const { return of(given, ops, op); }

 private:
  static std::int64_t of(const std::vector<KindTicks>& sizes, const OpSet& ops, OpId op) {
    const KindTicks& mine = sizes[ops.kind_of(op).value];
    return mine.values.size() == 1 ? mine.values[0] : mine.values[mine.at(ops.name(op))];
  }
};

/// Of `limit activations` and of `limit memory`. The latter has no limits if the sizes have no common part of at least
/// 2^-30: what follows from limits then follows from fewer. Cost: O(values of the memory lines).
std::array<LimitSizes, 2> limit_sizes(const Schedule& schedule);

}  // namespace stave
