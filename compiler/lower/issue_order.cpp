#include "compiler/lower/issue_order.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/check.h"
#include "core/lanes.h"

namespace stave {

namespace {

template <class Key>
struct Keyed {
  Key start;
  std::uint32_t node;
};

/// Stable; by start, which is below 2^bits.
template <class Key>
void radix_sort(std::vector<Keyed<Key>>& items, int bits) {
  constexpr int kDigit = 11;
  std::vector<Keyed<Key>> other(items.size());
  std::array<std::uint32_t, 1 << kDigit> next;
  for (int shift = 0; shift < bits; shift += kDigit) {
    next.fill(0);
    const auto digit = [&](const Keyed<Key>& item) { return (item.start >> shift) & ((1u << kDigit) - 1); };
    for (const Keyed<Key>& item : items) ++next[digit(item)];
    std::uint32_t sum = 0;
    for (std::uint32_t& count : next) {
      const std::uint32_t mine = count;
      count = sum;
      sum += mine;
    }
    for (const Keyed<Key>& item : items) other[next[digit(item)]++] = item;
    items.swap(other);
  }
}

template <class Key>
std::vector<std::uint32_t> by_start(const Table& table, const Starts& starts, const Readers& readers,
                                    std::size_t messages, int bits) {
  std::vector<Keyed<Key>> items;
  items.reserve(messages + table.size());
  for (std::uint32_t i = 0; i < readers.of.items.size(); ++i)
    if (readers.crosses(readers[i]) && readers.leads(i))
      items.push_back({static_cast<Key>(starts.end[readers[i].producer]), table.size() + i});
  for (std::uint32_t position = 0; position < table.size(); ++position)
    items.push_back({static_cast<Key>(starts.start[position]), position});
  radix_sort(items, bits);
  std::vector<std::uint32_t> result(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) result[i] = items[i].node;
  return result;
}

/// Puts nodes that start at one time into topological order, the entries of a block next to each other. Only entries of
/// no length make that necessary: whatever else starts at a time needs what started before it, or a message.
class Ties {
 public:
  Ties(const Table& table, const TableNeeds& needs, const Starts& starts, const Readers& readers)
      : table_(table),
        lanes_(table),
        needs_(needs),
        starts_(starts),
        readers_(readers),
        block_of_(blocks_of(table)),
        placed_(table.size() + readers.of.items.size(), false) {}

  void sort(std::vector<std::uint32_t>& order) {
    for (std::size_t begin = 0; begin < order.size();) {
      const Ticks time = start(order[begin]);
      bool has_empty = false;
      std::size_t end = begin;
      for (; end < order.size() && start(order[end]) == time; ++end)
        has_empty = has_empty || (order[end] < table_.size() && starts_.end[order[end]] == time);
      if (has_empty) sort(order, begin, end, time);
      begin = end;
    }
  }

 private:
  struct Visit {
    std::uint32_t node;
    /// Its predecessors have been visited.
    bool leaves = false;
  };

  Ticks start(std::uint32_t node) const {
    return node < table_.size() ? starts_.start[node] : starts_.end[readers_[node - table_.size()].producer];
  }

  /// Depth first, with a stack of our own: a chain may be as long as the table.
  void sort(std::vector<std::uint32_t>& order, std::size_t begin, std::size_t end, Ticks time) {
    sorted_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      stack_.push_back({order[i]});
      while (!stack_.empty()) {
        const Visit visit = stack_.back();
        stack_.pop_back();
        if (placed_[visit.node]) continue;
        if (visit.leaves) {
          for_each_of_block(visit.node, [&](std::uint32_t node) {
            sorted_.push_back(node);
            placed_[node] = true;
          });
          continue;
        }
        stack_.push_back({visit.node, true});
        const std::size_t first = stack_.size();
        for_each_of_block(visit.node, [&](std::uint32_t node) {
          for_each_predecessor(node, [&](std::uint32_t before) {
            if (!placed_[before] && start(before) == time && !together(before, node)) stack_.push_back({before});
          });
        });
        // The first is visited first, so that what need not move stays.
        std::reverse(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
      }
    }
    std::copy(sorted_.begin(), sorted_.end(), order.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  template <class Visit>
  void for_each_of_block(std::uint32_t node, Visit&& visit) const {
    if (node >= table_.size() || block_of_.empty() || block_of_[node] == UINT32_MAX) return visit(node);
    for (std::uint32_t position : table_.blocks[block_of_[node]]) visit(position);
  }

  /// Both are entries of one block.
  bool together(std::uint32_t a, std::uint32_t b) const {
    if (block_of_.empty() || a >= table_.size() || b >= table_.size()) return false;
    return block_of_[a] != UINT32_MAX && block_of_[a] == block_of_[b];
  }

  template <class Visit>
  void for_each_predecessor(std::uint32_t node, Visit&& visit) const {
    if (node >= table_.size()) return visit(readers_[node - table_.size()].producer);
    if (const std::uint32_t before = lanes_.previous(node); before != Lanes::kNone) visit(before);
    if (const std::uint32_t before = lanes_.written_after(node); before != Lanes::kNone) visit(before);
    if (!lanes_.plain())
      needs_.for_each(node, [&](std::uint32_t needed, std::uint16_t) {
        if (readers_.device_at[needed] == readers_.device_at[node]) visit(needed);
      });
    for (const std::uint32_t reader : readers_.inputs[node])
      if (reader != Readers::kNone && readers_.crosses(readers_[reader])) visit(table_.size() + reader);
  }

  const Table& table_;
  const Lanes lanes_;
  const TableNeeds& needs_;
  const Starts& starts_;
  const Readers& readers_;
  std::vector<std::uint32_t> block_of_;
  std::vector<bool> placed_;
  std::vector<std::uint32_t> sorted_;
  std::vector<Visit> stack_;
};

}  // namespace

std::vector<std::uint32_t> issue_order(const Table& table, const TableNeeds& needs, const Starts& starts,
                                       const Readers& readers) {
  std::size_t messages = 0;
  for (std::uint32_t i = 0; i < readers.of.items.size(); ++i)
    messages += readers.crosses(readers[i]) && readers.leads(i);
  Ticks last = 0;
  bool has_empty = false;
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    last = std::max(last, starts.end[position]);
    has_empty = has_empty || starts.start[position] == starts.end[position];
  }
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(last)));
  std::vector<std::uint32_t> order = bits <= 32 ? by_start<std::uint32_t>(table, starts, readers, messages, bits)
                                                : by_start<std::uint64_t>(table, starts, readers, messages, bits);
  if (has_empty) Ties(table, needs, starts, readers).sort(order);
  return order;
}

}  // namespace stave
