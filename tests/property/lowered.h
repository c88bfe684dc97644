// From the text of a schedule, or a table made by hand, to the Program that the executor runs.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/lower.h"
#include "compiler/render.h"
#include "compiler/verify.h"
#include "executor/plan.h"
#include "scheduler/order/order.h"
#include "scheduler/start_times.h"
#include "tests/unit/support/costs.h"

namespace stave::test {

inline Schedule schedule_of(const std::string& text, const std::vector<Argument>& arguments = {}) {
  Sources sources;
  Diagnostics sink;
  const SourceId source = sources.add("test.sched", text);
  const std::optional<Compiled> compiled = compile(sources, source, sink);
  if (!compiled) FAIL(render_lines(sources, sink));
  Expanded expanded = expand(*compiled, arguments, sink);
  if (!expanded.schedule) FAIL(render_lines(sources, sink));
  return std::move(*expanded.schedule);
}

/// The table that a schedule orders, verified.
inline Table table_of(const Schedule& schedule) {
  Diagnostics sink;
  std::optional<Table> table = order(schedule, costs_of(schedule), sink);
  REQUIRE(table);
  REQUIRE(verify(schedule, *table, sink));
  return std::move(*table);
}

/// A verified table lowered under the schedule's costs, and proven to finish without buffers.
inline Program program_of(const Schedule& schedule, const Table& table) {
  Diagnostics sink;
  Program program = lower(schedule, table, start_times(schedule, table, costs_of(schedule)));
  REQUIRE(verify(program, schedule, sink));
  return program;
}

/// What a program trains.
inline Partition partition_of(const Program& program) {
  Result<Plan> plan = make_plan(program, true);
  if (!plan) FAIL(plan.failure().message);
  return std::move(plan->model);
}

}  // namespace stave::test
