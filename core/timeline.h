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
  /// What a unit is called in print: "slots", "us"; empty if the costs do not say.
  std::string unit;

  // Of messages that contend, by message; each is empty where it would say nothing.
  /// When it could start but for its links, where it waits for its turn on them.
  std::vector<Ticks> asked;
  /// How much longer than alone it moved over links that it shared.
  std::vector<Ticks> longer;
  /// When all of it had come, where it ends only when there is a slot for it.
  std::vector<Ticks> came;
};

}  // namespace stave
