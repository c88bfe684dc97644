// Readers: who reads what each entry of a table makes, on which device. The messages of a program are found here: all
// readers of one payload of one producer on one other device share one.
#pragma once

#include <cstdint>
#include <span>
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
  /// The need of the consumer that this is: an index into TableNeeds::rows().items.
  std::uint32_t need = 0;
  /// The consumer's device.
  std::uint16_t device = 0;
  std::uint16_t payload = 0;
};

struct Readers {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// By producer, each row sorted by payload, device and consumer. One on the producer's own device is kept only if
  /// there is a payload.
  Rows<Reader> of;
  /// By need: where it stands in `of`, by the first of its group; kNone for one that is not kept, or is repeated.
  std::vector<std::uint32_t> by_need;
  /// Device of every position.
  std::vector<std::uint16_t> device_at;

  const Reader& operator[](std::uint32_t i) const { return of.items[i]; }
  /// What the entry at `position` reads, in the order of its needs: as `by_need`.
  std::span<const std::uint32_t> inputs(const TableNeeds& needs, std::uint32_t position) const {
    const std::vector<std::uint32_t>& first = needs.rows().first;
    return std::span(by_need).subspan(first[position], first[position + 1] - first[position]);
  }
  bool crosses(const Reader& reader) const { return reader.device != device_at[reader.producer]; }
  /// The readers of one producer, payload and device are a group; one that crosses is a message.
  static bool same_group(const Reader& a, const Reader& b) {
    return a.producer == b.producer && a.payload == b.payload && a.device == b.device;
  }
  bool leads(std::uint32_t i) const { return i == 0 || !same_group(of.items[i - 1], of.items[i]); }
  /// Of all messages.
  bool leads_message(std::uint32_t i) const { return crosses(of.items[i]) && leads(i); }
  /// One past the group that begins at `i`.
  std::uint32_t group_end(std::uint32_t i) const {
    std::uint32_t end = i + 1;
    while (end < of.items.size() && same_group(of.items[end], of.items[i])) ++end;
    return end;
  }
};

/// Shape: a row a position. `table` must be complete. Cost: O(entries + needs), a sort within long rows apart.
Readers find_readers(const TableNeeds& needs, const Table& table);

}  // namespace stave
