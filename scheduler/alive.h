// What a device holds at its peak of memory, by what it is for.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/schedule.h"
#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/memory.h"

namespace stave {

/// In the sizes of the schedule's costs.
struct Alive {
  double weights = 0;
  /// Gradients and the optimizer's state.
  double state = 0;
  /// Versions of weights beside one of each stage.
  double versions = 0;
  /// By stage, and of it by microbatch.
  std::map<std::uint32_t, std::map<std::uint32_t, double>> activations;
  /// Of messages, received or to be sent, by payload.
  struct Slots {
    std::uint16_t payload = 0;
    std::uint32_t count = 0;
    double size = 0;
  };
  std::vector<Slots> slots;

  double activations_of(std::uint32_t stage) const;
  double all_activations() const;
  double all_slots() const;
};

/// When the op at `peak`, that of the device, starts. Cost: O(entries of the device).
Alive alive_at(const PeakMemory& peak, DeviceId device, const Schedule& schedule, const Program& program,
               const Timeline& timeline);

}  // namespace stave
