#include "compiler/lower/readers.h"

#include <algorithm>
#include <tuple>

#include "core/check.h"

namespace stave {

namespace {

/// Sorts the readers of each producer, and leaves in `inputs` the first of each group once for each consumer.
void group(Readers& readers) {
  std::vector<Reader>& items = readers.of.items;
  for (std::size_t row = 0; row < readers.of.size(); ++row) {
    const std::uint32_t begin = readers.of.first[row];
    const std::uint32_t end = readers.of.first[row + 1];
    if (end - begin < 2) continue;
    std::sort(items.begin() + begin, items.begin() + end, [](const Reader& a, const Reader& b) {
      return std::tie(a.payload, a.device, a.consumer, a.input) < std::tie(b.payload, b.device, b.consumer, b.input);
    });
    std::uint32_t leader = begin;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (!Readers::same_group(items[leader], items[i])) leader = i;
      const bool repeated = i > leader && items[i - 1].consumer == items[i].consumer;
      readers.inputs.items[items[i].input] = repeated ? Readers::kNone : leader;
    }
  }
}

}  // namespace

Readers find_readers(const TableNeeds& needs, const Table& table, std::size_t most) {
  const std::uint32_t size = table.size();
  Readers readers;
  readers.device_at.resize(size);
  for (std::uint32_t d = 0; d < table.devices(); ++d)
    std::fill(readers.device_at.begin() + table.first[d], readers.device_at.begin() + table.first[d + 1],
              static_cast<std::uint16_t>(d));

  // By consumer first, since that is how needs are found; then counted into rows by producer.
  std::vector<Reader> found;
  // More than there will be; what is not filled costs no memory.
  found.reserve(most);
  std::vector<std::uint32_t>& first = readers.of.first;
  first.assign(std::size_t(size) + 1, 0);
  readers.inputs.first.reserve(std::size_t(size) + 1);
  for (std::uint32_t position = 0; position < size; ++position) {
    const std::uint16_t device = readers.device_at[position];
    needs.for_each(position, [&](std::uint32_t producer, std::uint16_t payload) {
      if (payload == 0 && readers.device_at[producer] == device) return;
      found.push_back({producer, position, static_cast<std::uint32_t>(found.size()), device, payload});
      ++first[producer + 1];
    });
    readers.inputs.first.push_back(static_cast<std::uint32_t>(found.size()));
  }
  STAVE_CHECK(found.size() < Readers::kNone - size, "too many messages");
  for (std::uint32_t position = 0; position < size; ++position) first[position + 1] += first[position];
  readers.of.items.resize(found.size());
  readers.inputs.items.resize(found.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const Reader& reader : found) {
    const std::uint32_t at = next[reader.producer]++;
    readers.of.items[at] = reader;
    readers.inputs.items[reader.input] = at;
  }
  group(readers);
  return readers;
}

}  // namespace stave
