// Readers: who reads what each entry of a table makes, on which device. The messages of a program are found here: all
// readers of one payload of one producer on one other device share one.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/table_needs.h"
#include "core/program.h"
#include "core/table.h"

namespace stave {

/// An op that needs what another makes.
struct Reader {
  /// Positions of the op that makes the data and of one that reads it.
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  /// Where the consumer lists this: an index into `Readers::inputs.items`.
  std::uint32_t input = 0;
  /// The consumer's device.
  std::uint16_t device = 0;
  std::uint16_t payload = 0;
};

struct Readers {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// By producer, each row sorted by payload, device and consumer. One on the producer's own device is kept only if
  /// there is a payload.
  Rows<Reader> of;
  /// By consumer, in the order of its needs: where it stands in `of`, by the first of its group; kNone
  /// for a repeated one.
  Rows<std::uint32_t> inputs;
  /// Device of every position.
  std::vector<std::uint16_t> device_at;

  const Reader& operator[](std::uint32_t i) const { return of.items[i]; }
  bool crosses(const Reader& reader) const { return reader.device != device_at[reader.producer]; }
  /// The readers of one producer, payload and device are a group; one that crosses is a message.
  static bool same_group(const Reader& a, const Reader& b) {
    return a.producer == b.producer && a.payload == b.payload && a.device == b.device;
  }
  bool leads(std::uint32_t i) const { return i == 0 || !same_group(of.items[i - 1], of.items[i]); }
  /// One past the group that begins at `i`.
  std::uint32_t group_end(std::uint32_t i) const {
    std::uint32_t end = i + 1;
    while (end < of.items.size() && same_group(of.items[end], of.items[i])) ++end;
    return end;
  }
};

/// Shape: a row a position in both. `table` must be complete; there are `most` needs at most.
/// Cost: O(entries + needs), a sort within long rows apart.
Readers find_readers(const TableNeeds& needs, const Table& table, std::size_t most);

}  // namespace stave
