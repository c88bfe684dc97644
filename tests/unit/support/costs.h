// The costs of a schedule of a test, which has some.
#pragma once

#include <optional>
#include <utility>

#include "doctest/doctest.h"
#include "scheduler/costs.h"

namespace stave::test {

inline Costs costs_of(const Schedule& schedule) {
  Diagnostics sink;
  std::optional<Costs> costs = make_costs(schedule, sink);
  REQUIRE(costs);
  return std::move(*costs);
}

}  // namespace stave::test
