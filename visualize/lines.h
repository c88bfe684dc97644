// Lines: the rows of a picture. A device's computing is one, each stream beside it another below.
// How a line looks is the renderers'.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/lanes.h"
#include "core/table.h"
#include "core/timeline.h"

namespace stave {

class Lines {
 public:
  struct Line {
    DeviceId device;
    /// Of Lanes.
    std::uint32_t lane = 0;
    /// "device 0", or the name of a stream.
    std::string name;
  };

  /// Those of the devices first .. last - 1. `table` and `timeline` must outlive it.
  Lines(const Table& table, const Timeline& timeline, std::uint32_t first, std::uint32_t last);

  const std::vector<Line>& all() const { return lines_; }

  /// Positions of a line whose ops last longer than 0 and touch begin .. end; of an overlapped pair the first.
  /// Starts must not fall along a line. Cost: O(log ops + result) where no device has a stream, else O(ops).
  std::vector<std::uint32_t> between(const Line& line, Ticks begin, Ticks end) const;

 private:
  const Table& table_;
  const Timeline& timeline_;
  Lanes lanes_;
  std::vector<std::uint32_t> block_of_;
  std::vector<Line> lines_;
};

}  // namespace stave
