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
  const bool is_wait = plan_.work[position] == Work::Wait;
  Ticks& start = timeline_.start[position];
  Ticks& end = timeline_.end[position];
  if (options_.clock == Clock::Virtual) {
    start = ready;
    if (is_wait) {
      end = start + cost(NodeId(position));
      return run_op(team, position);
    }
    cores_.acquire();
    const Ticks before = thread_cpu_ns();
    const bool ran = run_op(team, position);
    const Ticks after = thread_cpu_ns();
    cores_.release();
    end = start + (after - before);
    return ran && !team.stopped();
  }
  if (!wait_until(team, ready)) return false;
  start = now_ns() - origin_;
  if (!run_op(team, position)) return false;
  if (is_wait && !wait_until(team, start + cost(NodeId(position)))) return false;
  end = now_ns() - origin_;
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
