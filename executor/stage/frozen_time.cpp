#include "executor/stage/frozen_time.h"

#include "core/operations.h"
#include "executor/partition.h"

namespace stave {

namespace {

// Sums over the ops of a stage, lengths and multiply-adds both by the token, frozen and not.
struct Sums {
  FrozenTime result;
  double frozen_length = 0;
  double plain_length = 0;
  std::uint32_t timed_frozen = 0;
  std::uint32_t timed_plain = 0;
};

}  // namespace

std::vector<FrozenTime> frozen_times(const Program& program, const std::vector<Ticks>& lengths,
                                     const Transformer& model) {
  const OpSet& ops = program.table.ops;
  std::vector<Sums> stages;
  // Of all W that are not frozen.
  double length = 0;
  double work = 0;
  for (std::uint32_t position = 0; position < program.table.size(); ++position) {
    const OpId op = program.table.entries[position];
    const OpKind& kind = ops.kind(op);
    const bool is_alone = kind.operation == Operation::WeightGradient && kind.parts.empty();
    if (!is_alone && kind.operation != Operation::Backward) continue;
    const std::uint32_t s = ops.stage(op);
    const std::uint32_t m = ops.microbatch(op);
    if (s >= stages.size()) stages.resize(s + std::size_t{1});
    Sums& mine = stages[s];
    FrozenTime& result = mine.result;
    const Transformer::Frozen frozen = model.frozen(StageId(s), m);
    ++result.ops;
    if (frozen.asked > 0) {
      ++result.frozen;
      result.asked += frozen.asked;
      result.groups += frozen.groups;
      result.work += frozen.work;
    }
    if (!is_alone) continue;
    const auto tokens = static_cast<double>(model.payload_bytes("activation", m, slice_of(ops, op)));
    const double each = static_cast<double>(lengths[position]) / tokens;
    if (frozen.asked > 0) {
      mine.frozen_length += each;
      ++mine.timed_frozen;
    } else {
      mine.plain_length += each;
      ++mine.timed_plain;
      length += each;
      work += model.weight_work(StageId(s));
    }
  }
  std::vector<FrozenTime> results;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    const Sums& mine = stages[s];
    FrozenTime result = mine.result;
    if (result.frozen == 0) continue;
    result.stage = StageId(s);
    result.asked /= result.frozen;
    result.groups /= result.frozen;
    result.work /= result.frozen;
    double plain = 0;
    if (mine.timed_plain > 0) {
      plain = mine.plain_length / mine.timed_plain;
    } else if (work > 0) {
      plain = length / work * model.weight_work(StageId(s));
    }
    if (plain > 0 && mine.timed_frozen > 0) result.measured = 1 - mine.frozen_length / mine.timed_frozen / plain;
    results.push_back(result);
  }
  return results;
}

}  // namespace stave
