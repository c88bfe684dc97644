// SVG: a schedule as one picture file that stands by itself, dark on light, for papers and web pages.
// What the title says is the caller's; pictures in a terminal are terminal.h.
#pragma once

#include <cstdint>
#include <string>

#include "core/program.h"
#include "core/timeline.h"

namespace stave {

struct SvgOptions {
  /// Plain texts above the picture; either may be empty.
  std::string title;
  std::string subtitle;
  Ticks from = 0;
  /// A thin arrow for every message with data that lasts longer than 0 or crosses devices.
  bool messages = false;
  /// Most boxes drawn, and most devices; past them a part is drawn, and the picture says which.
  std::uint32_t most_boxes = 20000;
  std::uint32_t most_devices = 128;
};

/// The SVG text: one row to a device, a box to an op with its label where it fits, a time axis and a legend.
///
/// Shape: `timeline` has every node of `program`. Size: at most about 250 bytes a box. Cost: O(ops).
std::string draw_svg(const Program& program, const Timeline& timeline, const SvgOptions& options);

}  // namespace stave
