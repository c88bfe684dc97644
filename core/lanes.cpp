#include "core/lanes.h"

#include <algorithm>
#include <utility>

namespace stave {

namespace {

/// Whether an op of the table runs on a stream. Kinds that do and stand nowhere are common: they are optional.
bool has_streams(const Table& table) {
  for (const OpKind& kind : table.ops.kinds()) {
    if (kind.stream.empty()) continue;
    const auto is_of_kind = [&](OpId op) { return op.value - kind.first < kind.count; };
    if (std::any_of(table.entries.begin(), table.entries.end(), is_of_kind)) return true;
  }
  return false;
}

}  // namespace

Lanes::Lanes(const Table& table) : device_at_(table.size()), last_(table.size(), false) {
  const std::uint32_t devices = table.devices();
  for (std::uint32_t d = 0; d < devices; ++d) {
    const bool empty = table.first[d] == table.first[d + 1];
    heads_.push_back(empty ? kNone : table.first[d]);
    devices_.push_back(d);
    std::fill(device_at_.begin() + table.first[d], device_at_.begin() + table.first[d + 1],
              static_cast<std::uint16_t>(d));
    if (!empty) last_[table.first[d + 1] - 1] = true;
  }
  streams_.resize(devices);
  if (!has_streams(table)) return;

  next_.assign(table.size(), kNone);
  previous_.assign(table.size(), kNone);
  lane_.assign(table.size(), 0);
  written_after_.assign(table.size(), kNone);
  std::fill(heads_.begin(), heads_.end(), kNone);
  std::vector<std::uint32_t> last(devices, kNone);
  for (std::uint32_t d = 0; d < devices; ++d) {
    // The lanes of this device's streams: few.
    const std::uint32_t first_lane = count();
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const std::string& stream = table.ops.kind(table.entries[position]).stream;
      std::uint32_t lane = d;
      if (!stream.empty()) {
        lane = first_lane;
        while (lane < count() && streams_[lane] != stream) ++lane;
        if (lane == count()) {
          heads_.push_back(kNone);
          devices_.push_back(d);
          streams_.push_back(stream);
          last.push_back(kNone);
        }
        written_after_[position] = last[d];
      }
      lane_[position] = lane;
      previous_[position] = last[lane];
      if (last[lane] == kNone)
        heads_[lane] = position;
      else
        next_[last[lane]] = position;
      last[lane] = position;
    }
  }
}

}  // namespace stave
