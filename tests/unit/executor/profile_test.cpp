#include "executor/profile.h"

#include <doctest/doctest.h>

#include "make_program.h"

namespace stave {
namespace {

StageTimes alone(Ticks forward, Ticks input, Ticks weight, Ticks backward) {
  StageTimes result;
  result[Operation::Forward] = forward;
  result[Operation::InputGradient] = input;
  result[Operation::WeightGradient] = weight;
  result[Operation::Backward] = backward;
  return result;
}

TypicalLength length(const OpSet& ops, const char* kind, std::uint32_t stage, Ticks ns) {
  TypicalLength result;
  for (std::uint32_t k = 0; k < ops.kinds().size(); ++k)
    if (ops.kinds()[KindId(k)].name == kind) result.kind = KindId(k);
  REQUIRE(result.kind.valid());
  result.stage = StageId(stage);
  result.length_ns = ns;
  result.samples = 2;
  return result;
}

TEST_CASE("lengths of a run stand in a profile, and what it did not have follows them") {
  const Program p = test::make(test::one_f_one_b(2, 2), 2, 2);
  const OpSet& ops = p.table.ops;
  ModelProfile profile;
  profile.stages.assign(2, alone(100, 110, 90, 200));
  take_lengths(profile, ops, {length(ops, "F", 0, 150), length(ops, "I", 0, 165), length(ops, "W", 0, 135)});
  const StageTimes& first = profile.stages[StageId(0)];
  CHECK(first[Operation::Forward] == 150);
  CHECK(first[Operation::InputGradient] == 165);
  CHECK(first[Operation::WeightGradient] == 135);
  // All others took one and a half times as long as alone.
  CHECK(first[Operation::Backward] == 300);
  // Nothing ran of the other stage.
  CHECK(profile.stages[StageId(1)][Operation::Backward] == 200);
  CHECK(profile.pairs.empty());
}

TEST_CASE("pairs of all stages have one length by kind") {
  const Program p = test::make(test::one_f_one_b(2, 2), 2, 2);
  const OpSet& ops = p.table.ops;
  ModelProfile profile;
  profile.stages.assign(2, alone(100, 110, 90, 200));
  std::vector<TypicalLength> lengths = {length(ops, "F", 0, 180), length(ops, "F", 1, 220)};
  for (std::uint32_t s = 0; s < 2; ++s) {
    lengths[s].with = length(ops, "I", s, 0).kind;
    lengths[s].with_stage = StageId(s);
  }
  take_lengths(profile, ops, lengths);
  REQUIRE(profile.pairs.size() == 1);
  CHECK(profile.pairs[0].first == lengths[0].kind);
  CHECK(profile.pairs[0].second == lengths[0].with);
  CHECK(profile.pairs[0].ns == 200);
  CHECK(profile.stages[StageId(0)][Operation::Forward] == 100);
}

}  // namespace
}  // namespace stave
