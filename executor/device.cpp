#include "executor/device.h"

#include <algorithm>
#include <cstring>

#include "core/operations.h"
#include "executor/transport/inproc.h"

namespace stave {

std::size_t Device::stash_bytes(const Plan& plan, const Workload& workload, DeviceId id) {
  std::size_t most = 0;
  for (std::uint32_t s = 0; s < plan.placement.size(); ++s)
    if (plan.placement[StageId(s)] == id) most = std::max(most, workload.stash_bytes(StageId(s)));
  return most;
}

Device::Device(const Program& program, const Plan& plan, Workload& workload, DeviceId id,
               const std::vector<std::size_t>& payload_bytes)
    : program_(program),
      plan_(plan),
      workload_(workload),
      payload_bytes_(payload_bytes),
      buffers_(program.slots[id], payload_bytes, stash_bytes(plan, workload, id)) {
  for (std::uint32_t s = 0; s < plan.placement.size(); ++s)
    if (plan.placement[StageId(s)] == id) stages_.push_back(workload.stage(StageId(s)));
}

void Device::begin_step(std::uint64_t step) {
  for (Stage* stage : stages_) stage->begin_step(step);
}

void Device::optimizer_step() {
  for (Stage* stage : stages_) stage->optimizer_step();
}

std::string Device::run(std::uint32_t position, std::uint64_t step) {
  for (std::uint32_t i = program_.reads.first[position]; i < program_.reads.first[position + 1]; ++i) {
    const SlotUse& use = program_.reads.items[i];
    if (use.slot == UINT32_MAX) return "what it needs is made later on its own device";
    const Envelope due{step, plan_.expected[i], use.payload, payload_bytes_[use.payload]};
    if (std::string error = check_envelope(program_, buffers_.envelope(use.payload, use.slot), due, use.slot);
        !error.empty())
      return error;
  }
  if (plan_.is_wait[position] == 0) {
    if (program_.stash[position] == UINT32_MAX) return "nothing was kept for it by its forward";
    compute(position);
  }
  const OpId op = program_.table.entries[position];
  for (const SlotUse& use : program_.writes[position])
    buffers_.envelope(use.payload, use.slot) = {step, op, use.payload, payload_bytes_[use.payload]};
  return "";
}

void Device::compute(std::uint32_t position) {
  const OpSet& ops = program_.table.ops;
  const OpId op = program_.table.entries[position];
  const OpKind& kind = ops.kind(op);
  const std::uint32_t m = ops.microbatch(op);
  Stage& stage = *workload_.stage(StageId(ops.stage(op)));
  std::byte* stash = buffers_.stash(program_.stash[position]);

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
        std::memcpy(buffers_.slot(payload, use.slot), made, payload_bytes_[payload]);
  };
  const auto run_part = [&](Operation operation) {
    switch (operation) {
      case Operation::Forward: {
        std::byte* y = output(plan_.activation);
        stage.forward(m, input(plan_.activation), y, stash);
        spread(plan_.activation, y);
        break;
      }
      case Operation::InputGradient:
      case Operation::Backward: {
        std::byte* dx = output(plan_.gradient);
        stage.input_gradient(m, input(plan_.gradient), dx, stash);
        spread(plan_.gradient, dx);
        if (operation == Operation::Backward) stage.weight_gradient(m, stash);
        break;
      }
      case Operation::WeightGradient:
        stage.weight_gradient(m, stash);
        break;
      case Operation::ReduceGradient:
      case Operation::Optimizer:
      case Operation::Declared:
        break;
    }
  };
  if (kind.parts.empty()) {
    run_part(kind.operation);
  } else {
    for (KindId part : kind.parts) run_part(ops.kinds()[part].operation);
  }
}

}  // namespace stave
