// Terminal: a schedule as lines of text, one to a device, time to the right.
// Figures and headings are printed by the commands; a picture with every message is svg.h.
#pragma once

#include <cstdint>
#include <string>

#include "core/table.h"
#include "core/timeline.h"

namespace stave {

struct TerminalOptions {
  /// Columns of the terminal, the device names included; at least 40.
  std::uint32_t width = 100;
  /// Where the picture begins.
  Ticks from = 0;
  /// The whole length in one picture, however little room that leaves for labels.
  bool fit = false;
  /// Devices shown: the first, and how many.
  std::uint32_t first_device = 0;
  std::uint32_t devices = 64;
  /// Letters, digits and punctuation only.
  bool ascii = false;
  bool colour = false;
};

/// A grid that fits the width: each op is a box as long as the op lasts, idle time is empty, above them stands a time
/// axis; where a part is left out, the last line says which and how to see it.
///
/// Boxes have a label while there is room. `timeline` may have messages after the table's positions; they are not
/// drawn. Cost: O(ops) to choose the scale, then O(width * devices shown).
std::string draw_terminal(const Table& table, const Timeline& timeline, const TerminalOptions& options);

}  // namespace stave
