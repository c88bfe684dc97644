// Device: the stages of one device with their buffers, and how one op of its table is run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "executor/buffers.h"
#include "executor/plan.h"
#include "executor/stage/stage.h"

namespace stave {

class Device {
 public:
  /// Shape: payload_bytes[i] for every payload, the greatest of its messages. `program`, `plan` and `workload` must
  /// outlive it, and so must `memory`, where its buffers lie. Throws std::bad_alloc.
  Device(const Program& program, const Plan& plan, Workload& workload, DeviceId id,
         const std::vector<std::size_t>& payload_bytes, Memory& memory = host_memory());

  /// Size of the largest stash of a device's stages.
  static std::size_t stash_bytes(const Plan& plan, const Workload& workload, DeviceId id);

  void begin_step(std::uint64_t step);
  /// Runs what the op at `position` computes on this device alone (nothing if it is a wait or a reduction): takes its
  /// inputs from their slots, puts its outputs into theirs. Empty, or what was wrong with the data found; what a stage
  /// throws passes through.
  std::string run(std::uint32_t position, std::uint64_t step);
  /// Updates the stages that no op of the table has updated. Their gradients must be summed over all replicas.
  void end_step();

  DeviceBuffers& buffers() { return buffers_; }
  /// What data of `maker` is in step `step`.
  Envelope envelope(std::uint64_t step, OpId maker, std::uint16_t payload) const;

 private:
  std::string compute(std::uint32_t position);
  // Weights that an op receives become those it reads; those it read or made go where others receive them.
  void take_weights(std::uint32_t position);
  void hand_on_weights(std::uint32_t position);

  DeviceId id_;
  const Program& program_;
  const Plan& plan_;
  Workload& workload_;
  /// Shape: stages; null where it has none.
  std::vector<Stage*> stages_;
  Memory& memory_;
  DeviceBuffers buffers_;
  /// Stashes of the slices that the op under way may touch.
  std::vector<std::byte*> stashes_;
};

}  // namespace stave
