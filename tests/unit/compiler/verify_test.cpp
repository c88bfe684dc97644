// Proofs of tables: what is missing, repeated, in the wrong place or in an impossible order, and how it is said.
#include "compiler/verify.h"

#include <algorithm>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

std::vector<Diagnostic> errors_of(const Schedule& schedule, const Table& table) {
  Diagnostics sink;
  const bool passed = verify(schedule, table, sink);
  CHECK(passed != sink.has_errors());
  return sink.all();
}

/// Places every op at its number, and says its device.
class OriginsForTest : public Origins {
 public:
  Origin of(DeviceId device, OpId op, std::uint32_t occurrence) const override {
    return {Span{SourceId(0), op.value, op.value + 1},
            "on device " + std::to_string(device.value) + (occurrence > 0 ? ", again" : "")};
  }
  Span need(OpId, OpId) const override { return {}; }
};

}  // namespace

TEST_CASE("legal tables pass") {
  const Schedule schedule = test::training(4, 1, 8);
  CHECK(errors_of(schedule, test::gpipe(schedule)).empty());
  CHECK(errors_of(schedule, test::one_f_one_b(schedule)).empty());
}

TEST_CASE("a missing op is named with its device, many by their first and last") {
  const Schedule schedule = test::training(2, 1, 3);
  const std::vector<Diagnostic> one =
      errors_of(schedule, test::table(schedule, {"F0 F1 F2 B0 B1 B2", "F0 B0 F1 F2 B2"}));
  REQUIRE(one.size() == 1);
  CHECK(one[0].kind == "missing-op");
  CHECK(one[0].message == "`B(1, 1)` is missing on device 1");
  const std::vector<Diagnostic> two = errors_of(schedule, test::table(schedule, {"F0 I0", "F0 F1 F2 B0 B1 B2"}));
  REQUIRE(two.size() == 3);
  CHECK(two[0].message == "2 ops are missing: `B(0, 1)` and `B(0, 2)`");
  CHECK(two[1].message == "2 ops are missing: `F(0, 1)` and `F(0, 2)`");
  CHECK(two[2].message == "`W(0, 0)` is missing on device 0");
}

TEST_CASE("an op twice: by itself, on another device, and as a part") {
  const Schedule schedule = test::training(2, 1, 2);
  const std::vector<Diagnostic> same = errors_of(schedule, test::table(schedule, {"F0 F0 F1 B0 B1", "F0 B0 F1 B1"}));
  REQUIRE(same.size() == 1);
  CHECK(same[0].kind == "repeated-op");
  CHECK(same[0].message == "`F0` on device 0 stands there twice");
  const std::vector<Diagnostic> other = errors_of(schedule, test::table(schedule, {"F0 F1 B0 B1", "F0 B0 F1 B1 0F1"}));
  REQUIRE(other.size() == 2);
  CHECK(other[0].kind == "wrong-device");
  CHECK(other[0].message == "`F1` on device 1 belongs on device 0");
  CHECK(other[1].message == "`F1` on device 1 stands on device 0 already");
  const std::vector<Diagnostic> part = errors_of(schedule, test::table(schedule, {"F0 F1 B0 I0 B1", "F0 B0 F1 B1"}));
  REQUIRE(part.size() == 1);
  CHECK(part[0].message == "`I0` on device 0 runs `I(0, 0)`, which `B0` on device 0 has run already");
}

TEST_CASE("a device without a stage") {
  Schedule schedule = test::training(2, 1, 1);
  std::fill(schedule.device_of.begin(), schedule.device_of.end(), std::uint16_t(0));
  const std::vector<Diagnostic> errors = errors_of(schedule, test::table(schedule, {"0F0 1F0 1B0 0B0", ""}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == "idle-device");
  CHECK(errors[0].message == "no op must run on device 1");
}

TEST_CASE("an optional op may be left out, an op that does not exist must be") {
  Schedule schedule = test::training(1, 1, 1);
  schedule.exists.assign(schedule.ops.size(), true);
  schedule.exists[test::op(schedule, 'W', 0, 0).value] = false;
  CHECK(errors_of(schedule, test::table(schedule, {"F0 I0"})).empty());
  const std::vector<Diagnostic> errors = errors_of(schedule, test::table(schedule, {"F0 I0 W0"}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == "foreign-op");
  CHECK(errors[0].message == "there is no op `W(0, 0)` in this schedule");
}

TEST_CASE("a backward before its forward, as STYLE.md shows it") {
  Schedule schedule = test::training(2, 1, 4);
  schedule.origins = std::make_shared<OriginsForTest>();
  const std::vector<Diagnostic> errors =
      errors_of(schedule, test::table(schedule, {"F0 F1 B0 B2 F2 F3 B1 B3", "F0 B0 F1 B1 F2 B2 F3 B3"}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == "backward-before-forward");
  CHECK(errors[0].message == "`B2` on device 0 runs before its forward `F2`");
  CHECK(errors[0].primary.text == "backward of microbatch 2");
  CHECK(errors[0].primary.span.begin == test::op(schedule, 'B', 0, 2).value);
  REQUIRE(errors[0].labels.size() == 1);
  CHECK(errors[0].labels[0].text == "its forward comes later");
  REQUIRE(errors[0].notes.size() == 1);
  CHECK(errors[0].notes[0] == "on device 0");
}

TEST_CASE("the same mistake many times is one error with a count") {
  const Schedule schedule = test::training(1, 1, 40);
  std::string row;
  for (int m = 0; m < 40; ++m) row += "B" + std::to_string(m) + " F" + std::to_string(m) + " ";
  const std::vector<Diagnostic> errors = errors_of(schedule, test::table(schedule, {row}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].notes == std::vector<std::string>{"and 39 more `B` before `F` in the same way"});
}

TEST_CASE("an op before another that it needs") {
  const Schedule schedule = test::training(1, 2, 1);
  const std::vector<Diagnostic> errors = errors_of(schedule, test::table(schedule, {"0F0 1F0 0I0 1B0 0W0"}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == "runs-too-early");
  CHECK(errors[0].message == "`0I0` on device 0 runs before `1B0`, which it needs");
}

TEST_CASE("two devices that wait for each other: the cycle of four edges") {
  // The wrong table of facts about PyTorch's validator: accepted there.
  const Schedule schedule = test::training(2, 1, 2);
  const std::vector<Diagnostic> errors = errors_of(schedule, test::table(schedule, {"F0 B0 F1 B1", "F0 F1 B0 B1"}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == "order-cycle");
  CHECK(errors[0].message == "devices 0 and 1 wait for each other");
  CHECK(errors[0].notes == std::vector<std::string>{
                               "`B0` on device 0 needs `B0` on device 1", "`B0` on device 1 stands behind `F1` there",
                               "`F1` on device 1 needs `F1` on device 0", "`F1` on device 0 stands behind `B0` there"});
}

TEST_CASE("the shorter of two cycles is shown") {
  // Devices 0 and 1 wait for each other; device 2 waits for both, device 3 for device 2.
  const Schedule schedule = test::training(4, 1, 2);
  const std::vector<Diagnostic> errors =
      errors_of(schedule, test::table(schedule, {"F0 B0 F1 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1"}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].notes.size() <= 6);
}

TEST_CASE("one backward before its forward among many ops is found as the cycle of two edges") {
  const Schedule schedule = test::training(64, 1, 1024);
  Table table = test::one_f_one_b(schedule);
  const auto row = table.entries.begin() + table.first[32];
  const auto forward = std::find(row, table.entries.end(), test::op(schedule, 'F', 32, 500));
  const auto backward = std::find(row, table.entries.end(), test::op(schedule, 'B', 32, 500));
  std::rotate(forward, backward, backward + 1);
  const std::vector<Diagnostic> errors = errors_of(schedule, table);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message == "`B500` on device 32 runs before its forward `F500`");
}

TEST_CASE("random defects: an error exactly when a plain run gets stuck") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Schedule schedule =
        test::training(1 + static_cast<std::uint32_t>(random() % 4), 1 + static_cast<std::uint32_t>(random() % 2),
                       1 + static_cast<std::uint32_t>(random() % 5));
    Table table = test::random_table(schedule, seed);
    for (int swaps = 0; swaps < 2; ++swaps) {
      const std::uint32_t d = static_cast<std::uint32_t>(random() % table.devices());
      const std::uint32_t length = table.first[d + 1] - table.first[d];
      std::swap(table.entries[table.first[d] + random() % length], table.entries[table.first[d] + random() % length]);
    }
    std::vector<bool> done(schedule.ops.size(), false);
    std::vector<std::uint32_t> next(table.first.begin(), table.first.end() - 1);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t d = 0; d < table.devices(); ++d) {
        if (next[d] == table.first[d + 1]) continue;
        const std::vector<OpId> parts = schedule.ops.parts(table.entries[next[d]]);
        bool ready = true;
        for (OpId part : parts)
          for (const Dependency& need : schedule.needs[part.value])
            ready = ready && (done[need.op.value] || std::find(parts.begin(), parts.end(), need.op) != parts.end());
        if (!ready) continue;
        for (OpId part : parts) done[part.value] = true;
        ++next[d];
        moved = true;
      }
    }
    bool stuck = false;
    for (std::uint32_t d = 0; d < table.devices(); ++d) stuck = stuck || next[d] < table.first[d + 1];
    CHECK(errors_of(schedule, table).empty() == !stuck);
  }
}

}  // namespace stave
