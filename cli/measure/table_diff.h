// Two tables laid side by side: whether the devices run the same ops in the same order, and where they first do not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/table.h"

namespace stave {

struct TableDiff {
  struct Device {
    bool same = true;
    /// Ops in either.
    std::uint32_t ops[2] = {0, 0};
    /// The first that differs, counted from 0 on the device, and what either runs there; empty where it has ended.
    std::uint32_t at = 0;
    std::string text[2];
  };
  /// As many as the table with more of them has.
  std::vector<Device> devices;
  std::uint32_t different = 0;
};

/// Ops are the same if they are written the same. Cost: O(ops).
TableDiff compare_tables(const Table& first, const Table& second);

}  // namespace stave
