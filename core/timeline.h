// Timeline: start and end of every node of a Program, simulated or measured; one type, so that they lay over one another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/message_costs.h"
#include "core/ticks.h"

namespace stave {

/// Start and end of every entry of a table, before there are messages as nodes.
/// Shape: both have one value a position of the table. Unit: ticks.
struct Starts {
  std::vector<Ticks> start;
  std::vector<Ticks> end;
  /// What messages take in the costs that made these times.
  MessageCosts<Ticks> message;
};

/// Shape: start[n], end[n] for every NodeId n of the Program: table positions first, then messages. Unit: ticks.
struct Timeline {
  std::vector<Ticks> start;
  std::vector<Ticks> end;
  /// A time in ticks, divided by this, is in the unit of the costs.
  Ticks ticks_per_unit = 1;
  /// A message that starts later than it could has waited for a link that others took.
  bool shares_links = false;
  /// What a unit is called in print: "slots", "us"; empty if the costs do not say.
  std::string unit;
};

}  // namespace stave
