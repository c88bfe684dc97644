#include "visualize/lines.h"

#include <algorithm>

namespace stave {

Lines::Lines(const Table& table, const Timeline& timeline, std::uint32_t first, std::uint32_t last)
    : table_(table), timeline_(timeline), lanes_(table), block_of_(blocks_of(table)) {
  for (std::uint32_t d = first; d < last; ++d) {
    lines_.push_back({DeviceId(d), d, "device " + std::to_string(d)});
    const std::size_t streams = lines_.size();
    for (std::uint32_t lane = table.devices(); lane < lanes_.count(); ++lane)
      if (lanes_.device(lane) == d) lines_.push_back({DeviceId(d), lane, lanes_.stream(lane)});
    // In one order on every device.
    std::sort(lines_.begin() + static_cast<std::ptrdiff_t>(streams), lines_.end(),
              [](const Line& a, const Line& b) { return a.name < b.name; });
  }
}

std::vector<std::uint32_t> Lines::between(const Line& line, Ticks begin, Ticks end) const {
  std::vector<std::uint32_t> result;
  const auto add = [&](std::uint32_t position) {
    const bool seconds = !block_of_.empty() && position > table_.first[line.device.value] &&
                         block_of_[position] != UINT32_MAX && block_of_[position] == block_of_[position - 1];
    if (!seconds && timeline_.end[position] > timeline_.start[position] && timeline_.end[position] > begin)
      result.push_back(position);
  };
  if (!lanes_.plain()) {
    for (std::uint32_t at = lanes_.head(line.lane); at != Lanes::kNone; at = lanes_.next(at))
      if (timeline_.start[at] < end) add(at);
    return result;
  }
  const std::uint32_t first = table_.first[line.device.value];
  const std::uint32_t last = table_.first[line.device.value + 1];
  const auto base = timeline_.start.begin();
  // The one that began before the window may still run in it; nothing earlier can, since a line is one op at a time.
  std::uint32_t position = static_cast<std::uint32_t>(std::lower_bound(base + first, base + last, begin) - base);
  while (position > first && timeline_.end[position - 1] > begin) --position;
  for (; position < last && timeline_.start[position] < end; ++position) add(position);
  return result;
}

}  // namespace stave
