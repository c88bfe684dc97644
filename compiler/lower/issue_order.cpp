#include "compiler/lower/issue_order.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/check.h"
#include "core/lanes.h"

namespace stave {

namespace {

/// Most bits of a start that one pass sorts by: their buckets fit into the second cache.
constexpr std::size_t kMostBits = 15;

template <class Key>
struct Keyed {
  Key start;
  NodeId node;
};

/// Calls `visit(start, node)` for every message, by its producer, and then for every entry.
template <class Visit>
void for_each_node(const Table& table, const Starts& starts, const Readers& readers, Visit&& visit) {
  for (std::uint32_t i = 0; i < readers.of.items.size(); ++i)
    if (readers.leads_message(i)) visit(starts.end[readers[i].producer], NodeId(table.size() + i));
  for (std::uint32_t position = 0; position < table.size(); ++position) visit(starts.start[position], NodeId(position));
}

/// A stable radix sort of the nodes by start, all of which are below 2^bits and fit into a Key.
template <class Key>
std::vector<NodeId> by_start(const Table& table, const Starts& starts, const Readers& readers, std::size_t bits) {
  const std::size_t passes = std::max<std::size_t>(1, (bits + kMostBits - 1) / kMostBits);
  const std::size_t digit_bits = (bits + passes - 1) / passes;
  const auto digit = [&](auto start, std::size_t pass) {
    return (static_cast<std::uint64_t>(start) >> (pass * digit_bits)) & ((std::uint64_t(1) << digit_bits) - 1);
  };
  // By pass and digit: how many come before; then, where the next one goes.
  std::vector<std::vector<std::uint32_t>> next(passes, std::vector<std::uint32_t>(std::size_t(1) << digit_bits, 0));
  for_each_node(table, starts, readers, [&](Ticks start, NodeId) {
    for (std::size_t pass = 0; pass < passes; ++pass) ++next[pass][digit(start, pass)];
  });
  std::uint32_t nodes = 0;
  for (std::vector<std::uint32_t>& counts : next) {
    nodes = 0;
    for (std::uint32_t& count : counts) nodes += std::exchange(count, nodes);
  }

  std::vector<NodeId> result(nodes);
  if (passes == 1) {
    std::vector<std::uint32_t>& at = next[0];
    for_each_node(table, starts, readers, [&](Ticks start, NodeId node) { result[at[digit(start, 0)]++] = node; });
    return result;
  }
  std::vector<Keyed<Key>> items(nodes);
  for_each_node(table, starts, readers, [&](Ticks start, NodeId node) {
    items[next[0][digit(start, 0)]++] = {static_cast<Key>(start), node};
  });
  for (std::size_t pass = 1; pass + 1 < passes; ++pass) {
    std::vector<Keyed<Key>> sorted(nodes);
    for (const Keyed<Key>& item : items) sorted[next[pass][digit(item.start, pass)]++] = item;
    items.swap(sorted);
  }
  for (const Keyed<Key>& item : items) result[next.back()[digit(item.start, passes - 1)]++] = item.node;
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

  void sort(std::vector<NodeId>& order) {
    for (std::size_t begin = 0; begin < order.size();) {
      const Ticks time = start(order[begin].value);
      bool has_empty = false;
      std::size_t end = begin;
      for (; end < order.size() && start(order[end].value) == time; ++end)
        has_empty = has_empty || (order[end].value < table_.size() && starts_.end[order[end].value] == time);
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
  void sort(std::vector<NodeId>& order, std::size_t begin, std::size_t end, Ticks time) {
    sorted_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      stack_.push_back({order[i].value});
      while (!stack_.empty()) {
        const Visit visit = stack_.back();
        stack_.pop_back();
        if (placed_[visit.node]) continue;
        if (visit.leaves) {
          for_each_of_block(visit.node, [&](std::uint32_t node) {
            sorted_.push_back(NodeId(node));
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
    for (const std::uint32_t reader : readers_.inputs(needs_, node))
      if (reader != Readers::kNone && readers_.crosses(readers_[reader])) visit(table_.size() + reader);
  }

  const Table& table_;
  const Lanes lanes_;
  const TableNeeds& needs_;
  const Starts& starts_;
  const Readers& readers_;
  std::vector<std::uint32_t> block_of_;
  std::vector<bool> placed_;
  std::vector<NodeId> sorted_;
  std::vector<Visit> stack_;
};

}  // namespace

std::vector<NodeId> issue_order(const Table& table, const TableNeeds& needs, const Starts& starts,
                                const Readers& readers) {
  Ticks last = 0;
  bool has_empty = false;
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    last = std::max(last, starts.end[position]);
    has_empty = has_empty || starts.start[position] == starts.end[position];
  }
  const auto bits = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(last)));
  std::vector<NodeId> order = bits <= 32 ? by_start<std::uint32_t>(table, starts, readers, bits)
                                         : by_start<std::uint64_t>(table, starts, readers, bits);
  if (has_empty) Ties(table, needs, starts, readers).sort(order);
  return order;
}

}  // namespace stave
