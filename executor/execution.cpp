#include "executor/execution.h"

#include <algorithm>
#include <exception>

#include "executor/nvtx.h"
#include "executor/transport/inproc.h"

namespace stave {

Execution::Execution(const Program& program, const Plan& plan, const RunOptions& options, Workload& workload,
                     std::vector<std::unique_ptr<Device>>& devices, Remote* remote)
    : program_(program),
      plan_(plan),
      options_(options),
      workload_(workload),
      devices_(devices),
      remote_(remote),
      reductions_(plan),
      cores_(usable_cores()) {
  for (OpId op : program.table.entries) names_.push_back(nvtx_name(program.table.ops, op));
  timeline_.ticks_per_unit = 1000;
  timeline_.unit = "us";
}

bool Execution::takes_part(NodeId n) const {
  if (!program_.is_message(n)) return is_here(plan_.device[n.value]);
  const Edge& edge = program_.edges[program_.message(n).edge.value];
  return is_here(edge.source) || is_here(edge.target);
}

bool Execution::is_remote(NodeId message) const {
  const Edge& edge = program_.edges[program_.message(message).edge.value];
  return !is_here(edge.source) || !is_here(edge.target);
}

void Execution::begin_step(std::uint64_t step, Ticks origin) {
  step_ = step;
  reductions_.begin_step();
  timeline_.start.assign(program_.nodes(), 0);
  timeline_.end.assign(program_.nodes(), 0);
  origin_ = origin;
}

Ticks Execution::latest_end(NodeId node) const {
  Ticks latest = 0;
  for (NodeId before : program_.waits[node.value]) latest = std::max(latest, end(before));
  if (program_.is_message(node)) latest = std::max(latest, timeline_.end[program_.message(node).producer]);
  return latest;
}

std::string Execution::text(NodeId n) const {
  return describe(program_, n) + ", step " + std::to_string(step_ + 1);
}

bool Execution::wait_until(const Team& team, Ticks time) const {
  if (options_.clock == Clock::Virtual) return !team.stopped();
  return sleep_until_ns(origin_ + time, team.stopped());
}

bool Execution::run_op(Team& team, std::uint32_t position) {
  const DeviceId d = plan_.device[position];
  const NvtxRange range(names_[position]);
  std::string error;
  try {
    error = devices_[d.value]->run(position, step_);
  } catch (const std::exception& e) {
    error = e.what();
  }
  return error.empty() || fail(team, NodeId(position), error);
}

bool Execution::fail(Team& team, NodeId node, const std::string& error) {
  team.fail(text(node) + ": " + error);
  return false;
}

std::string Execution::sum_replicas(StageId s, Ticks& ready) {
  if (remote_ != nullptr) return remote_->reduce(s, step_, ready);
  reduce_gradients(replicas_of(plan_.model, workload_, s));
  return "";
}

bool Execution::reduce_at_end(Team& team, StageId s) {
  Ticks ready = 0;
  const std::string error = sum_replicas(s, ready);
  if (error.empty()) return true;
  team.fail("sum of the gradients of stage " + std::to_string(s.value) + ", step " + std::to_string(step_ + 1) + ": " +
            error);
  return false;
}

void Execution::reduce_tied_at_end(Team& team, std::span<const std::vector<StageId>> groups) {
  for (const std::vector<StageId>& group : groups) {
    if (remote_ == nullptr) {
      reduce_tied(plan_.model, workload_, group);
    } else if (const std::string error = remote_->reduce_tied(group, step_); !error.empty()) {
      return team.fail("sum of the tied gradients, step " + std::to_string(step_ + 1) + ": " + error);
    }
  }
}

bool Execution::reduce(Team& team, std::uint32_t position, Ticks ready) {
  if (!run_op(team, position) || !wait_until(team, ready)) return false;
  const StageId s(program_.table.ops.stage(program_.table.entries[position]));
  Reductions::Times times{ready, 0};
  std::string error;
  const bool met = reductions_.meet(team, position, times, [&](Ticks start) -> Reductions::Times {
    const bool is_wall = options_.clock == Clock::Wall;
    cores_.acquire();
    const Ticks before = is_wall ? now_ns() : thread_cpu_ns();
    error = sum_replicas(s, start);
    const Ticks length = (is_wall ? now_ns() : thread_cpu_ns()) - before;
    cores_.release();
    if (is_wall) start = before - origin_;
    return {start, start + length};
  });
  timeline_.start[position] = times.start;
  timeline_.end[position] = times.end;
  if (!error.empty()) return fail(team, NodeId(position), error);
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
  if (!error.empty()) return fail(team, message, error);
  timeline_.start[message.value] = start;
  timeline_.end[message.value] = start + cost(message);
  if (is_wall) timeline_.end[message.value] = std::max(timeline_.end[message.value], now_ns() - origin_);
  return true;
}

bool Execution::carry_half(Team& team, NodeId message, Ticks ready) {
  const bool is_wall = options_.clock == Clock::Wall;
  const bool sends = is_here(program_.edges[program_.message(message).edge.value].source);
  Ticks start = is_wall ? std::max(ready, now_ns() - origin_) : ready;
  Ticks sent = start;
  const std::string error = sends ? remote_->send(message, step_, start) : remote_->receive(message, step_, sent);
  if (!error.empty()) return fail(team, message, error);
  start = std::max(start, sent);
  timeline_.start[message.value] = start;
  timeline_.end[message.value] = start + cost(message);
  if (is_wall) timeline_.end[message.value] = std::max(timeline_.end[message.value], now_ns() - origin_);
  return true;
}

}  // namespace stave
