// Lanes: what runs one after the other on a device: its computing, and beside it each stream of its other ops.
// Follows from a table alone; lanes of messages are the edges of a Program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/table.h"

namespace stave {

class Lanes {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Cost: O(entries); two bytes an entry, and sixteen more where ops run on streams.
  explicit Lanes(const Table& table);

  /// Lane d is the computing of device d; the streams of devices, where there are any, have the numbers above.
  std::uint32_t count() const { return static_cast<std::uint32_t>(heads_.size()); }
  /// No op runs beside the computing.
  bool plain() const { return next_.empty(); }

  /// First position of a lane, or kNone.
  std::uint32_t head(std::uint32_t lane) const { return heads_[lane]; }
  /// The position after, and before, one on its lane, or kNone.
  std::uint32_t next(std::uint32_t position) const {
    if (!plain()) return next_[position];
    return last_[position] ? kNone : position + 1;
  }
  std::uint32_t previous(std::uint32_t position) const {
    if (!plain()) return previous_[position];
    return position == 0 || last_[position - 1] ? kNone : position - 1;
  }
  std::uint32_t lane(std::uint32_t position) const {
    return plain() ? device_at_[position] : lane_[position];
  }
  /// The device of a position: Table::device_of at once.
  std::uint32_t device_at(std::uint32_t position) const { return device_at_[position]; }
  std::uint32_t device(std::uint32_t lane) const { return lane < devices_.size() ? devices_[lane] : lane; }
  /// The stream of a lane; empty for computing.
  const std::string& stream(std::uint32_t lane) const { return streams_[lane]; }
  bool computes(std::uint32_t position) const { return plain() || lane_[position] == device_at_[position]; }
  /// Of an op on a stream: the computing op written before it, for whose end it waits; kNone for others.
  std::uint32_t written_after(std::uint32_t position) const { return plain() ? kNone : written_after_[position]; }

 private:
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> devices_;
  std::vector<std::string> streams_;
  /// By position; kMaxDevices of a schedule fit.
  std::vector<std::uint16_t> device_at_;
  /// By position: ends the row of its device.
  std::vector<bool> last_;
  /// By position; empty where all ops compute.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> previous_;
  std::vector<std::uint32_t> lane_;
  std::vector<std::uint32_t> written_after_;
};

}  // namespace stave
