#include "compiler/lower/readers.h"

#include <algorithm>
#include <tuple>

#include "core/check.h"

namespace stave {

namespace {

/// Sorts the readers of each producer, and leaves in `by_need` the first of each group once for each consumer.
void group(Readers& readers) {
  std::vector<Reader>& items = readers.of.items;
  for (std::size_t row = 0; row < readers.of.size(); ++row) {
    const std::uint32_t begin = readers.of.first[row];
    const std::uint32_t end = readers.of.first[row + 1];
    if (end - begin < 2) continue;
    std::sort(items.begin() + begin, items.begin() + end, [](const Reader& a, const Reader& b) {
      return std::tie(a.payload, a.device, a.consumer, a.need) < std::tie(b.payload, b.device, b.consumer, b.need);
    });
    std::uint32_t leader = begin;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (!Readers::same_group(items[leader], items[i])) leader = i;
      const bool repeated = i > leader && items[i - 1].consumer == items[i].consumer;
      readers.by_need[items[i].need] = repeated ? Readers::kNone : leader;
    }
  }
}

/// Calls `visit(reader)` for each that is kept, by consumer.
template <class Visit>
void for_each_reader(const TableNeeds& needs, const Table& table, Visit&& visit) {
  Reader reader;
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    reader.device = static_cast<std::uint16_t>(d);
    for (reader.consumer = table.first[d]; reader.consumer < table.first[d + 1]; ++reader.consumer)
      for (const TableNeed& need : needs[reader.consumer]) {
        reader.producer = need.position;
        reader.payload = need.payload;
        if (need.payload != 0 || need.device != reader.device) visit(std::as_const(reader));
        ++reader.need;
      }
  }
}

}  // namespace

Readers find_readers(const TableNeeds& needs, const Table& table) {
  const std::uint32_t size = table.size();
  STAVE_CHECK(needs.rows().items.size() < Readers::kNone - size, "too many messages");
  Readers readers;
  readers.device_at.resize(size);
  for (std::uint32_t d = 0; d < table.devices(); ++d)
    std::fill(readers.device_at.begin() + table.first[d], readers.device_at.begin() + table.first[d + 1],
              static_cast<std::uint16_t>(d));

  // Needs are listed by consumer. They are counted into rows by producer: while a row is filled, the number above its
  // own says where; so when all are, that is where the next one begins.
  std::vector<std::uint32_t>& first = readers.of.first;
  first.assign(std::size_t(size) + 2, 0);
  for_each_reader(needs, table, [&](const Reader& reader) { ++first[reader.producer + 2]; });
  for (std::uint32_t position = 0; position < size; ++position) first[position + 2] += first[position + 1];
  readers.of.items.resize(first.back());
  readers.by_need.assign(needs.rows().items.size(), Readers::kNone);
  for_each_reader(needs, table, [&](const Reader& reader) {
    const std::uint32_t at = first[reader.producer + 1]++;
    readers.of.items[at] = reader;
    readers.by_need[reader.need] = at;
  });
  first.pop_back();
  group(readers);
  return readers;
}

}  // namespace stave
