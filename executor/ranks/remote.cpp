#include "executor/ranks/remote.h"

#include <algorithm>
#include <cstring>

#include "executor/gradients.h"

namespace stave {

namespace {

std::size_t largest_sum(const Plan& plan, Workload& workload, const Ranks& ranks) {
  std::size_t most = 0;
  for (std::uint32_t s = 0; s < plan.model.stages; ++s) {
    const std::vector<DeviceId>& devices = plan.model.devices[StageId(s)];
    for (std::uint32_t r = 0; r < devices.size(); ++r) {
      if (!ranks.has(devices[r])) continue;
      Stage& stage = *workload.stage(StageId(s), r);
      most = std::max(most, bytes_of(devices.size() > 1 ? stage.gradients() : stage.tied_gradients()));
    }
  }
  return most;
}

}  // namespace

Remote::Remote(const Program& program, const Plan& plan, Workload& workload,
               std::vector<std::unique_ptr<Device>>& devices, const Ranks& ranks, std::uint64_t plan_hash)
    : program_(program),
      plan_(plan),
      workload_(workload),
      devices_(devices),
      ranks_(ranks),
      plan_hash_(plan_hash),
      arrived_(largest_sum(plan, workload, ranks)) {}

MessageHeader Remote::header(std::uint64_t step, std::uint32_t channel, Ticks ready) const {
  MessageHeader result;
  result.plan = plan_hash_;
  result.step = step;
  result.channel = channel;
  result.ready = ready;
  return result;
}

std::string Remote::check(const MessageHeader& found, const MessageHeader& due) const {
  if (found.magic != due.magic) return "what arrived is no message of stave";
  if (found.plan != due.plan) return "what arrived belongs to another program";
  const auto content = [](const MessageHeader& h) { return Envelope{h.step, OpId(h.op), h.payload, h.bytes}; };
  if (content(found) == content(due) && found.channel == due.channel) return "";
  return describe(program_, content(found)) + " arrived, but " + describe(program_, content(due)) + " is due";
}

std::string Remote::send(NodeId node, std::uint64_t step, Ticks ready) {
  const Message& m = program_.message(node);
  const Edge& edge = program_.edges[m.edge.value];
  MessageHeader mine = header(step, m.edge.value, ready);
  mine.op = program_.table.entries[m.producer].value;
  mine.payload = m.payload;
  std::span<const std::byte> data;
  if (m.out_slot != UINT32_MAX) {
    DeviceBuffers& buffers = devices_[edge.source.value]->buffers();
    const Envelope& leaving = buffers.envelope(m.payload, m.out_slot);
    const Envelope due{step, OpId(mine.op), m.payload, leaving.bytes};
    if (std::string error = check_envelope(program_, leaving, due, m.out_slot); !error.empty()) return error;
    mine.bytes = leaving.bytes;
    data = {buffers.slot(m.payload, m.out_slot), leaving.bytes};
  }
  return ranks_.transport->send({m.edge.value, ranks_.rank_of(edge.target)}, mine, data);
}

std::string Remote::receive(NodeId node, std::uint64_t step, Ticks& ready) {
  const Message& m = program_.message(node);
  const Edge& edge = program_.edges[m.edge.value];
  MessageHeader due = header(step, m.edge.value, 0);
  due.op = program_.table.entries[m.producer].value;
  due.payload = m.payload;
  Device& target = *devices_[edge.target.value];
  std::span<std::byte> data;
  Envelope content;
  if (m.in_slot != UINT32_MAX) {
    content = target.envelope(step, OpId(due.op), m.payload);
    due.bytes = content.bytes;
    data = {target.buffers().slot(m.payload, m.in_slot), content.bytes};
  }
  MessageHeader found;
  const Channel channel{m.edge.value, ranks_.rank_of(edge.source)};
  if (std::string error = ranks_.transport->receive(channel, found, data); !error.empty()) return error;
  if (std::string error = check(found, due); !error.empty()) return error;
  if (m.in_slot != UINT32_MAX) target.buffers().envelope(m.payload, m.in_slot) = content;
  ready = found.ready;
  return "";
}

Channel Remote::reductions_from(DeviceId source, DeviceId target) const {
  // Above those of the edges.
  const std::uint32_t devices = program_.table.devices();
  const auto edges = static_cast<std::uint32_t>(program_.edges.size());
  return {edges + source.value * devices + target.value, ranks_.rank_of(ranks_.has(source) ? target : source)};
}

std::string Remote::send_gradients(DeviceId from, DeviceId to, std::uint64_t step, Ticks ready,
                                   const GradientView& gradients) {
  const Channel channel = reductions_from(from, to);
  MessageHeader sent = header(step, channel.number, ready);
  sent.bytes = bytes_of(gradients);
  return ranks_.transport->send(channel, sent, {static_cast<std::byte*>(gradients.data), bytes_of(gradients)});
}

std::string Remote::receive_gradients(DeviceId from, DeviceId to, std::uint64_t step, Ticks& ready,
                                      std::span<std::byte> into) {
  const Channel channel = reductions_from(from, to);
  MessageHeader due = header(step, channel.number, 0);
  due.bytes = into.size();
  MessageHeader found;
  std::string error = ranks_.transport->receive(channel, found, into);
  if (error.empty()) error = check(found, due);
  ready = std::max(ready, found.ready);
  return error;
}

std::string Remote::reduce(StageId s, std::uint64_t step, Ticks& ready) {
  const std::vector<DeviceId>& devices = plan_.model.devices[s];
  std::uint32_t mine = 0;
  while (!ranks_.has(devices[mine])) ++mine;
  const GradientView gradients = workload_.stage(s, mine)->gradients();
  const std::size_t bytes = bytes_of(gradients);
  if (mine != 0) {
    if (std::string error = send_gradients(devices[mine], devices[0], step, ready, gradients); !error.empty())
      return error;
    return receive_gradients(devices[0], devices[mine], step, ready, {static_cast<std::byte*>(gradients.data), bytes});
  }
  GradientView arrived = gradients;
  arrived.data = arrived_.data();
  for (DeviceId other : std::span(devices).subspan(1)) {
    if (std::string error = receive_gradients(other, devices[0], step, ready, {arrived_.data(), bytes}); !error.empty())
      return error;
    add_gradients(gradients, arrived);
  }
  for (DeviceId other : std::span(devices).subspan(1))
    if (std::string error = send_gradients(devices[0], other, step, ready, gradients); !error.empty()) return error;
  return "";
}

std::string Remote::reduce_tied(std::span<const StageId> group, std::uint64_t step) {
  std::vector<GradientView> mine;
  std::vector<DeviceId> takers;
  const DeviceId first = plan_.model.devices[group.front()].front();
  for (StageId s : group)
    for (std::uint32_t r = 0; r < plan_.model.devices[s].size(); ++r) {
      const DeviceId d = plan_.model.devices[s][r];
      if (Stage* stage = workload_.stage(s, r)) mine.push_back(stage->tied_gradients());
      if (d != first && std::ranges::find(takers, d) == takers.end()) takers.push_back(d);
    }
  if (mine.empty()) return "";
  Ticks ready = 0;
  const std::size_t bytes = bytes_of(mine.front());
  GradientView arrived = mine.front();
  arrived.data = arrived_.data();
  for (StageId s : group.subspan(1)) {
    const DeviceId from = plan_.model.devices[s].front();
    std::string error;
    if (from == first) {
      if (ranks_.has(first)) add_gradients(mine.front(), workload_.stage(s)->tied_gradients());
    } else if (ranks_.has(from)) {
      error = send_gradients(from, first, step, ready, workload_.stage(s)->tied_gradients());
    } else if (ranks_.has(first)) {
      error = receive_gradients(from, first, step, ready, {arrived_.data(), bytes});
      if (error.empty()) add_gradients(mine.front(), arrived);
    }
    if (!error.empty()) return error;
  }
  for (DeviceId to : takers) {
    std::string error;
    if (ranks_.has(first)) {
      error = send_gradients(first, to, step, ready, mine.front());
    } else if (ranks_.has(to)) {
      error = receive_gradients(first, to, step, ready, {static_cast<std::byte*>(mine.front().data), bytes});
    }
    if (!error.empty()) return error;
  }
  for (const GradientView& each : std::span(mine).subspan(1)) std::memcpy(each.data, mine.front().data, bytes);
  return "";
}

}  // namespace stave
