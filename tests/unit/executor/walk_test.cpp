// Where a thread of a rank is, and the rank that it waits for.
#include "executor/walk.h"

#include <doctest/doctest.h>

#include "executor/stage/integer.h"
#include "make_program.h"

namespace stave::test {
namespace {

/// The rank of device `here`, before any op of a step.
struct Rank {
  Rank(const Order& order, std::uint32_t stages, std::uint32_t microbatches, std::uint32_t device)
      : here(device), program(make(order, stages, microbatches)), plan(make_plan(program, true)), devices(program.table.devices()) {
    REQUIRE(plan);
    REQUIRE(workload.configure(plan->model));
    workload.create();
    const std::vector<std::size_t> payloads(program.payloads.size(), workload.payload_bytes("activation"));
    devices[here] = std::make_unique<Device>(program, *plan, workload, DeviceId(here), payloads);
    execution = std::make_unique<Execution>(program, *plan, options, workload, devices, nullptr);
    walk = std::make_unique<Walk>(*execution);
    walk->begin_step(0);
  }

  /// Of the n-th op of the device.
  Position at(std::uint32_t n) const {
    for (std::uint32_t i = 0; i < program.table.size(); ++i)
      if (plan.value().device[i].value == here && n-- == 0) return walk->position(i);
    return {};
  }

  std::uint32_t here;
  IntegerWorkload workload;
  RunOptions options;
  Program program;
  Result<Plan> plan;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<Execution> execution;
  std::unique_ptr<Walk> walk;
};

TEST_CASE("an op waits for the rank that its message comes from, a message for its other end") {
  const Rank rank(one_f_one_b(2, 1), 2, 1, 0);
  CHECK(rank.at(0).doing == "F(0, 0) on device 0, step 1");
  CHECK(rank.at(0).waits_for == kNobody);
  CHECK(rank.at(1).doing == "the wait before B(0, 0) on device 0, step 1");
  CHECK(rank.at(1).waits_for == 1);
  REQUIRE(rank.program.messages.size() == 2);
  for (std::uint32_t m = 0; m < 2; ++m)
    CHECK(rank.walk->position(rank.program.node(MessageId(m)).value).waits_for == 1);
}

// Each device has a replica of the one stage, and its third op is the reduction.
std::uint32_t reduction_waits_for(std::uint32_t replicas, std::uint32_t here) {
  Order order(replicas);
  for (std::uint32_t d = 0; d < replicas; ++d) order[d] = {{'F', 0, d}, {'B', 0, d}, {'G', 0, d}, {'O', 0, d}};
  return Rank(order, 1, replicas, here).at(2).waits_for;
}

TEST_CASE("a reduction waits for the first replica, and that one for another where it is the only one") {
  CHECK(reduction_waits_for(2, 0) == 1);
  CHECK(reduction_waits_for(2, 1) == 0);
  CHECK(reduction_waits_for(3, 0) == kNobody);
  CHECK(reduction_waits_for(3, 2) == 0);
}

}  // namespace
}  // namespace stave::test
