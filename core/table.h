// Table: for every device, its ops in order. Everything before makes one, everything after reads one.
// An entry is a bare op number: four bytes, so ten million ops are ordinary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/op_set.h"
#include "core/rows.h"

namespace stave {

struct Table {
  OpSet ops;
  /// Entries of all devices, device 0 first. A fused op is one entry.
  std::vector<OpId> entries;
  /// Shape: devices + 1. Device d owns entries first[d] .. first[d + 1] - 1. An index into `entries` is a *position*.
  std::vector<std::uint32_t> first = {0};
  /// Entries that run as one: they start together, once all of them may, and end together. Rows of rising positions, at
  /// least two each. An overlapped pair stands next to each other on one device; the entries of a reduction stand on
  /// the devices of the replicas.
  Rows<std::uint32_t> blocks;

  std::uint32_t devices() const { return static_cast<std::uint32_t>(first.size() - 1); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries.size()); }
  std::span<const OpId> on(DeviceId d) const {
    return std::span<const OpId>(entries).subspan(first[d.value], first[d.value + 1] - first[d.value]);
  }
  /// The device that owns a position. Cost: O(log devices).
  DeviceId device_of(std::uint32_t position) const;
};

/// For every op number the position that runs it (a part of a fused op: the position of the whole), or OpId::kNone.
/// Shape: ops.size(). An op that stands twice gets its first position.
std::vector<std::uint32_t> positions_of(const Table& table);

/// For every position the row of `blocks` it is in, or UINT32_MAX. Shape: table.size(); empty if there are no blocks.
std::vector<std::uint32_t> blocks_of(const Table& table);

}  // namespace stave
