// Held back: when a device idles although an op of it has all that it needs, and does not fit into a limit.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/schedule.h"
#include "core/lanes.h"
#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/limit_sizes.h"

namespace stave {

/// An op is held back if its block would offer it: all ops of an `any` and of a `fill`, the next one of a list.
class HeldBack {
 public:
  static constexpr Ticks kNever = INT64_MAX;

  /// All must outlive it. Cost: nothing without limits, else O(entries log entries + waits) over all devices.
  HeldBack(const Schedule& schedule, const Program& program, const Timeline& timeline, const Lanes& lanes)
      : schedule_(schedule), program_(program), times_(timeline), lanes_(lanes), sizes_(limit_sizes(schedule)) {}

  /// Goes to a device, before `since` is asked of it.
  void enter(DeviceId device);
  /// While the computing of the device idles from `from` on, to run `next`: since when one of its ops has been held
  /// back, or kNever. `from` must not fall from call to call.
  Ticks since(Ticks from, std::uint32_t next);

 private:
  struct Change {
    Ticks time = 0;
    bool takes = false;
    std::array<std::int64_t, 2> size = {};
  };
  /// An op that takes memory, has not run at some point of its lane, and would be offered there.
  struct Waiting {
    Ticks ready = kNever;
    std::uint32_t position = 0;
  };

  bool limited(DeviceId device) const { return sizes_[0].most[device.value] || sizes_[1].most[device.value]; }
  std::array<std::int64_t, 2> taken(std::uint32_t position) const;
  void find_changes();
  void find_waiting();
  Ticks ready(std::uint32_t position) const;

  const Schedule& schedule_;
  const Program& program_;
  const Timeline& times_;
  const Lanes& lanes_;
  const std::array<LimitSizes, 2> sizes_;
  DeviceId device_;
  /// Empty where the device has no limit.
  std::vector<Change> changes_;
  std::size_t next_change_ = 0;
  std::array<std::int64_t, 2> held_ = {};
  /// The first that is ready of those from each position of the device on.
  std::vector<Waiting> waiting_;
};

}  // namespace stave
