#include "executor/device.h"

#include <algorithm>

#include "core/operations.h"

namespace stave {

namespace {

/// Which replica of a stage a device has; none if it has not got the stage.
std::uint32_t replica_on(const Partition& model, StageId s, DeviceId d) {
  const std::vector<DeviceId>& devices = model.devices[s];
  const auto at = std::ranges::lower_bound(devices, d);
  return at == devices.end() || *at != d ? UINT32_MAX : static_cast<std::uint32_t>(at - devices.begin());
}

}  // namespace

std::size_t Device::stash_bytes(const Plan& plan, const Workload& workload, DeviceId id) {
  std::size_t most = 0;
  for (std::uint32_t s = 0; s < plan.model.stages; ++s)
    if (replica_on(plan.model, StageId(s), id) != UINT32_MAX) most = std::max(most, workload.stash_bytes(StageId(s)));
  return most;
}

Device::Device(const Program& program, const Plan& plan, Workload& workload, DeviceId id,
               const std::vector<std::size_t>& payload_bytes, Memory& memory)
    : id_(id),
      program_(program),
      plan_(plan),
      workload_(workload),
      stages_(plan.model.stages, nullptr),
      memory_(memory),
      buffers_(program.slots[id], payload_bytes, stash_bytes(plan, workload, id), memory),
      stashes_(plan.model.slices) {
  for (std::uint32_t s = 0; s < plan.model.stages; ++s) {
    const std::uint32_t replica = replica_on(plan.model, StageId(s), id);
    if (replica != UINT32_MAX) stages_[s] = workload.stage(StageId(s), replica);
  }
}

void Device::begin_step(std::uint64_t step) {
  for (Stage* stage : stages_)
    if (stage != nullptr) stage->begin_step(step);
}

void Device::end_step() {
  for (std::uint32_t s = 0; s < stages_.size(); ++s)
    if (stages_[s] != nullptr && plan_.updates_itself[s] == 0) stages_[s]->optimizer_step(0, 0);
  for (std::uint32_t s = 0; s < stages_.size(); ++s)
    if (stages_[s] != nullptr) stages_[s]->settle(plan_.newest_slot[s][replica_on(plan_.model, StageId(s), id_)]);
}

void Device::take_weights(std::uint32_t position) {
  if (plan_.weights == 0) return;
  const std::uint32_t s = program_.table.ops.stage(program_.table.entries[position]);
  for (std::uint32_t i = program_.reads.first[position]; i < program_.reads.first[position + 1]; ++i) {
    const SlotUse& use = program_.reads.items[i];
    if (use.payload != plan_.weights || program_.table.ops.stage(plan_.expected[i]) != s) continue;
    const std::span<std::byte> mine = stages_[s]->weights(plan_.weights_slot[position]);
    memory_.copy(mine.data(), buffers_.slot(use.payload, use.slot), mine.size());
  }
}

void Device::hand_on_weights(std::uint32_t position) {
  if (plan_.weights == 0) return;
  const std::uint32_t s = program_.table.ops.stage(program_.table.entries[position]);
  for (const SlotUse& use : program_.writes[position]) {
    if (use.payload != plan_.weights) continue;
    const std::span<std::byte> mine = stages_[s]->weights(plan_.weights_slot[position]);
    memory_.copy(buffers_.slot(use.payload, use.slot), mine.data(), mine.size());
  }
}

Envelope Device::envelope(std::uint64_t step, OpId maker, std::uint16_t payload) const {
  const OpSet& ops = program_.table.ops;
  const std::string& name = program_.payloads[payload];
  const std::uint32_t m = maker.valid() ? ops.microbatch(maker) : OpId::kNone;
  const bool has_slice = m < plan_.model.microbatches && slice_of(ops, maker) < plan_.model.slices_of(m);
  return {step, maker, payload,
          has_slice ? workload_.payload_bytes(name, m, slice_of(ops, maker)) : workload_.payload_bytes(name)};
}

std::string Device::run(std::uint32_t position, std::uint64_t step) {
  for (std::uint32_t i = program_.reads.first[position]; i < program_.reads.first[position + 1]; ++i) {
    const SlotUse& use = program_.reads.items[i];
    if (use.slot == UINT32_MAX) return "what it needs is made later on its own device";
    const Envelope due = envelope(step, plan_.expected[i], use.payload);
    if (std::string error = check_envelope(program_, buffers_.envelope(use.payload, use.slot), due, use.slot);
        !error.empty())
      return error;
  }
  const OpId op = program_.table.entries[position];
  switch (plan_.work[position]) {
    case Work::Train:
      if (std::string error = compute(position); !error.empty()) return error;
      break;
    case Work::Update:
      stages_[program_.table.ops.stage(op)]->optimizer_step(plan_.weights_before[position],
                                                            plan_.weights_slot[position]);
      hand_on_weights(position);
      break;
    case Work::Reduce:
    case Work::Wait:
      break;
  }
  for (const SlotUse& use : program_.writes[position])
    buffers_.envelope(use.payload, use.slot) = envelope(step, op, use.payload);
  return "";
}

std::string Device::compute(std::uint32_t position) {
  const OpSet& ops = program_.table.ops;
  const OpId op = program_.table.entries[position];
  const OpKind& kind = ops.kind(op);
  const StageId s(ops.stage(op));
  Stage& stage = *stages_[s.value];
  Part part;
  part.microbatch = ops.microbatch(op);
  part.slice = slice_of(ops, op);
  part.begins = plan_.model.begins(s, part.microbatch);
  part.ends = plan_.model.ends(s, part.microbatch);
  part.recomputed = plan_.model.is_recomputed(s.value, part.microbatch, part.slice);
  part.weights = plan_.weights_slot[position];
  for (std::uint32_t q = 0; q < stashes_.size(); ++q) {
    const std::uint32_t slot =
        q == part.slice ? program_.stash[position] : plan_.stash[plan_.model.triple(s.value, part.microbatch, q)];
    if (slot == UINT32_MAX && q <= part.slice)
      return std::string("nothing was kept for it by ") + (q == part.slice ? "its forward" : "a slice before it");
    stashes_[q] = slot == UINT32_MAX ? nullptr : buffers_.stash(slot);
  }
  part.stashes = stashes_;

  const auto input = [&](std::uint16_t payload) -> const std::byte* {
    for (const SlotUse& use : program_.reads[position])
      if (payload != 0 && use.payload == payload) return buffers_.slot(payload, use.slot);
    return nullptr;
  };
  // Readers on several devices may each have a slot: the first is computed into, the others get copies.
  const auto output = [&](std::uint16_t payload) -> std::byte* {
    for (const SlotUse& use : program_.writes[position])
      if (payload != 0 && use.payload == payload) return buffers_.slot(payload, use.slot);
    return nullptr;
  };
  const auto spread = [&](std::uint16_t payload, const std::byte* made) {
    for (const SlotUse& use : program_.writes[position])
      if (payload != 0 && use.payload == payload && buffers_.slot(payload, use.slot) != made)
        memory_.copy(buffers_.slot(payload, use.slot), made,
                     workload_.payload_bytes(program_.payloads[payload], part.microbatch, part.slice));
  };
  const auto run_part = [&](Operation operation) {
    switch (operation) {
      case Operation::Forward: {
        std::byte* y = output(plan_.activation);
        stage.forward(part, input(plan_.activation), y);
        spread(plan_.activation, y);
        break;
      }
      case Operation::InputGradient:
      case Operation::Backward: {
        std::byte* dx = output(plan_.gradient);
        if (operation == Operation::Backward) {
          stage.backward(part, input(plan_.gradient), dx);
        } else {
          stage.input_gradient(part, input(plan_.gradient), dx);
        }
        spread(plan_.gradient, dx);
        break;
      }
      case Operation::WeightGradient:
        stage.weight_gradient(part);
        break;
      case Operation::Recompute:
        stage.recompute(part);
        break;
      case Operation::ReduceGradient:
      case Operation::Optimizer:
      case Operation::Declared:
        break;
    }
  };
  take_weights(position);
  if (kind.parts.empty()) {
    run_part(kind.operation);
  } else {
    const auto part_is = [&](std::size_t i, Operation operation) {
      return i < kind.parts.size() && ops.kinds()[kind.parts[i]].operation == operation;
    };
    for (std::size_t i = 0; i < kind.parts.size(); ++i) {
      const bool both = part_is(i, Operation::InputGradient) && part_is(i + 1, Operation::WeightGradient);
      run_part(both ? Operation::Backward : ops.kinds()[kind.parts[i]].operation);
      if (both) ++i;
    }
  }
  hand_on_weights(position);
  return "";
}

}  // namespace stave
