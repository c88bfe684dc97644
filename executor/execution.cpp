#include "executor/execution.h"

#include <algorithm>
#include <exception>

#include "executor/transport/inproc.h"

namespace stave {

Execution::Execution(const Program& program, const Plan& plan, const RunOptions& options, Workload& workload,
                     std::vector<std::unique_ptr<Device>>& devices)
    : program_(program),
      plan_(plan),
      options_(options),
      workload_(workload),
      devices_(devices),
      reductions_(plan),
      cores_(usable_cores()) {
  timeline_.ticks_per_unit = 1000;
  timeline_.unit = "us";
}

void Execution::begin_step(std::uint64_t step) {
  step_ = step;
  reductions_.begin_step();
  timeline_.start.assign(program_.nodes(), 0);
  timeline_.end.assign(program_.nodes(), 0);
  origin_ = now_ns();
}

Ticks Execution::latest_end(NodeId node) const {
  Ticks latest = 0;
  for (NodeId before : program_.waits[node.value]) latest = std::max(latest, end(before));
  if (program_.is_message(node)) latest = std::max(latest, timeline_.end[program_.message(node).producer]);
  return latest;
}

bool Execution::wait_until(const Team& team, Ticks time) const {
  if (options_.clock == Clock::Virtual) return !team.stopped();
  return sleep_until_ns(origin_ + time, team.stopped());
}

bool Execution::run_op(Team& team, std::uint32_t position) {
  const DeviceId d = plan_.device[position];
  std::string error;
  try {
    error = devices_[d.value]->run(position, step_);
  } catch (const std::exception& e) {
    error = e.what();
  }
  if (error.empty()) return true;
  team.fail(describe(program_, NodeId(position)) + ", step " + std::to_string(step_ + 1) + ": " + error);
  return false;
}

bool Execution::reduce(Team& team, std::uint32_t position, Ticks ready) {
  if (!run_op(team, position) || !wait_until(team, ready)) return false;
  const StageId s(program_.table.ops.stage(program_.table.entries[position]));
  Reductions::Times times{ready, 0};
  const bool met = reductions_.meet(team, position, times, [&](Ticks start) -> Reductions::Times {
    const bool is_wall = options_.clock == Clock::Wall;
    cores_.acquire();
    const Ticks before = is_wall ? now_ns() : thread_cpu_ns();
    reduce_gradients(replicas_of(plan_.model, workload_, s));
    const Ticks length = (is_wall ? now_ns() : thread_cpu_ns()) - before;
    cores_.release();
    if (is_wall) start = before - origin_;
    return {start, start + length};
  });
  timeline_.start[position] = times.start;
  timeline_.end[position] = times.end;
  return met;
}

bool Execution::compute(Team& team, std::uint32_t position, Ticks ready) {
  if (plan_.work[position] == Work::Reduce) return reduce(team, position, ready);
  const std::uint32_t last = position + plan_.together[position] - 1;
  const auto run_all = [&] {
    for (std::uint32_t each = position; each <= last; ++each)
      if (!run_op(team, each)) return false;
    return true;
  };
  // What is not computed lasts its cost: of a pair, each op's cost is that of both.
  bool computes = false;
  Ticks wait = 0;
  for (std::uint32_t each = position; each <= last; ++each) {
    computes = computes || plan_.work[each] != Work::Wait;
    if (plan_.work[each] == Work::Wait) wait = std::max(wait, cost(NodeId(each)));
  }
  Ticks start = ready;
  Ticks end = 0;
  if (options_.clock == Clock::Virtual) {
    Ticks length = 0;
    if (computes) cores_.acquire();
    const Ticks before = computes ? thread_cpu_ns() : 0;
    const bool ran = run_all();
    if (computes) length = thread_cpu_ns() - before;
    if (computes) cores_.release();
    if (!ran || team.stopped()) return false;
    end = start + length + wait;
  } else {
    if (!wait_until(team, ready)) return false;
    start = now_ns() - origin_;
    if (!run_all()) return false;
    if (wait > 0 && !wait_until(team, computes ? now_ns() - origin_ + wait : start + wait)) return false;
    end = now_ns() - origin_;
  }
  for (std::uint32_t each = position; each <= last; ++each) {
    timeline_.start[each] = start;
    timeline_.end[each] = end;
  }
  return true;
}

bool Execution::carry(Team& team, NodeId message, Ticks ready) {
  const Message& m = program_.message(message);
  const Edge& edge = program_.edges[m.edge.value];
  const bool is_wall = options_.clock == Clock::Wall;
  const Ticks start = is_wall ? std::max(ready, now_ns() - origin_) : ready;
  const std::string error =
      deliver(program_, m, step_, devices_[edge.source.value]->buffers(), devices_[edge.target.value]->buffers());
  if (!error.empty()) {
    team.fail(describe(program_, message) + ", step " + std::to_string(step_ + 1) + ": " + error);
    return false;
  }
  timeline_.start[message.value] = start;
  timeline_.end[message.value] = start + cost(message);
  if (is_wall) timeline_.end[message.value] = std::max(timeline_.end[message.value], now_ns() - origin_);
  return true;
}

}  // namespace stave
