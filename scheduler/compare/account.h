// Account: what a priced schedule spends its time on, as far as two of them are compared by it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/metrics.h"
#include "core/program.h"
#include "core/timeline.h"
#include "scheduler/analysis.h"
#include "scheduler/contention/turns.h"

namespace stave {

/// Messages between two devices, either way, on the critical path.
struct Crossed {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t count = 0;
  double time = 0;
};

/// Times in the unit of the costs.
struct Account {
  double makespan = 0;
  /// Of a device, on average: working, and idle by IdleCause. They sum to the makespan.
  double busy = 0;
  std::array<double, kIdleCauses.size()> idle = {};
  /// Of the critical path: its messages, by pair of devices that has a part in it, a < b, rising; and its ops.
  std::vector<Crossed> crossed;
  std::uint32_t path_messages = 0;
  double path_message_time = 0;
  double path_op_time = 0;
};

/// `timeline` must be complete, `report` be its report and `turns` be its turns. Cost: O(nodes + waits).
Account account_of(const Program& program, const Timeline& timeline, const Costs& costs, const Report& report,
                   const Turns& turns = {});

/// One reason for which a schedule takes longer than another.
struct Reason {
  /// None: a device works longer.
  std::optional<IdleCause> cause;
  /// How much longer, of a device on average.
  double more = 0;
};

/// By falling size; those under a hundredth of the largest are left out. What is left out aside, they sum to the
/// difference of the makespans.
std::vector<Reason> reasons(const Account& shorter, const Account& longer);

/// The two devices between which the critical path of `longer` loses the most against that of `shorter`; none if it
/// loses nowhere. Shape: the messages of both paths there.
struct SlowLink {
  Crossed shorter;
  Crossed longer;
};
std::optional<SlowLink> slow_link(const Account& shorter, const Account& longer);

}  // namespace stave
