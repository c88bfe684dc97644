// Whether a Program finishes when nothing at all is buffered.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/cell_text.h"
#include "compiler/lower.h"
#include "core/fetch.h"
#include "core/lanes.h"

namespace stave {

namespace {

class Rendezvous {
 public:
  explicit Rendezvous(const Program& program) : program_(program), block_of_(blocks_of(program.table)) { start(); }

  bool finishes() {
    if (follows_order()) return true;
    start();
    return comes_to_end();
  }

  /// Whether a node runs together with entries of other devices.
  bool is_together(NodeId node) const {
    if (program_.is_message(node) || block_of_.empty() || block_of_[node.value] == UINT32_MAX) return false;
    const auto all = block(node);
    return program_.table.device_of(all.front()) != program_.table.device_of(all.back());
  }
  std::span<const std::uint32_t> block(NodeId node) const { return program_.table.blocks[block_of_[node.value]]; }
  /// The first device of a block that has not come to it, or is held back there; none if all are there.
  std::optional<std::uint32_t> absent(NodeId node) const {
    for (std::uint32_t position : block(node)) {
      const std::uint32_t d = program_.table.device_of(position).value;
      if (!has_head(d) || head(d) != NodeId(position) || waits_for(NodeId(position)).valid()) return d;
    }
    return std::nullopt;
  }
  bool all_there(NodeId node) const { return !absent(node); }

  /// The devices of a ring of which each waits for the next, found from the first that stopped.
  std::vector<std::uint32_t> ring() const {
    std::uint32_t at = 0;
    while (!has_head(at)) ++at;
    std::vector<bool> seen(program_.table.devices(), false);
    for (; !seen[at]; at = waited_for(at)) seen[at] = true;
    std::vector<std::uint32_t> result = {at};
    for (std::uint32_t d = waited_for(at); d != at; d = waited_for(d)) result.push_back(d);
    return result;
  }

  NodeId head(std::uint32_t d) const { return program_.issue.items[next_[d]]; }
  /// The first node that has not ended and must before `node` starts.
  NodeId waits_for(NodeId node) const {
    for (NodeId before : program_.waits[node.value])
      if (!done_[before.value]) return before;
    return NodeId();
  }
  std::uint32_t peer(std::uint32_t d, NodeId message) const {
    const Edge& edge = program_.edges[program_.message(message).edge.value];
    return edge.source.value == d ? edge.target.value : edge.source.value;
  }

 private:
  void start() {
    next_.assign(program_.issue.first.begin(), program_.issue.first.end() - 1);
    done_.assign(program_.nodes(), false);
  }

  /// True if the order of the Program is the proof: each of its nodes, when its turn comes, has what it waits for and is the
  /// next of its devices. That of every Program that `lower` made is, where no entries of several devices run together.
  bool follows_order() {
    const std::vector<NodeId>& order = program_.order;
    if (order.size() != program_.nodes()) return false;
    const Lanes lanes(program_.table);
    const NodeId* const issued = program_.issue.items.data();
    const std::uint32_t* const ends = program_.issue.first.data() + 1;
    std::uint32_t* const next = next_.data();
    const auto take = [&](std::uint32_t d, NodeId node) {
      const std::uint32_t at = next[d];
      if (at == ends[d] || issued[at] != node) return false;
      fetch(issued + at + 16);
      next[d] = at + 1;
      return true;
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      fetch_before(i);
      const NodeId node = order[i];
      if (is_together(node) || waits_for(node).valid()) return false;
      if (program_.is_message(node)) {
        const Edge& edge = program_.edges[program_.message(node).edge.value];
        if (!take(edge.source.value, node) || !take(edge.target.value, node)) return false;
      } else if (!take(lanes.device_at(node.value), node)) {
        return false;
      }
      done_[node.value] = true;
    }
    return nothing_left();
  }

  /// Nodes that follow each other in time lie far apart in every array: what those to come ask for is fetched before.
  void fetch_before(std::size_t i) const {
    constexpr std::size_t kAhead = 40;
    const std::vector<NodeId>& order = program_.order;
    if (i + 2 * kAhead >= order.size()) return;
    fetch(program_.waits.first, order[i + 2 * kAhead].value);
    fetch(program_.waits.items, program_.waits.first[order[i + kAhead].value]);
  }

  bool comes_to_end() {
    std::vector<std::uint32_t> runnable;
    std::uint64_t moved = 1;
    // A device whose head waits for a node of another is tried again as long as anything moves. In a Program that
    // `lower` made this never happens: all that a node waits for stands before it in its own row.
    while (moved > 0) {
      moved = 0;
      for (std::uint32_t d = program_.table.devices(); d-- > 0;) runnable.push_back(d);
      while (!runnable.empty()) {
        const std::uint32_t d = runnable.back();
        runnable.pop_back();
        while (has_head(d) && !waits_for(head(d)).valid()) {
          const NodeId node = head(d);
          if (is_together(node)) {
            if (!all_there(node)) break;
            for (std::uint32_t position : block(node)) {
              const std::uint32_t other = program_.table.device_of(position).value;
              done_[position] = true;
              ++next_[other];
              ++moved;
              if (other != d) runnable.push_back(other);
            }
            continue;
          }
          if (program_.is_message(node)) {
            const std::uint32_t other = peer(d, node);
            if (!has_head(other) || head(other) != node) break;
            ++next_[other];
            runnable.push_back(other);
          }
          done_[node.value] = true;
          ++next_[d];
          ++moved;
        }
      }
    }
    return nothing_left();
  }

  bool nothing_left() const {
    for (std::uint32_t d = 0; d < program_.table.devices(); ++d)
      if (has_head(d)) return false;
    return true;
  }

  bool has_head(std::uint32_t d) const { return next_[d] < program_.issue.first[d + 1]; }
  std::uint32_t waited_for(std::uint32_t d) const {
    const NodeId before = waits_for(head(d));
    if (!before.valid()) return is_together(head(d)) ? *absent(head(d)) : peer(d, head(d));
    return program_.is_message(before) ? peer(d, before) : program_.table.device_of(before.value).value;
  }

  const Program& program_;
  std::vector<std::uint32_t> next_;
  std::vector<bool> done_;
  std::vector<std::uint32_t> block_of_;
};

std::string message_text(const Program& program, const CellText& cell, const Message& message) {
  const std::string& payload = program.payloads[message.payload];
  return (payload.empty() ? "the signal" : "the " + payload) + " of `" + cell(program.table.entries[message.producer]) +
         "` for `" + cell(program.table.entries[message.consumer]) + "`";
}

std::string why(const Program& program, const CellText& cell, const Rendezvous& state, std::uint32_t d) {
  const NodeId node = state.head(d);
  const std::string device = "device " + std::to_string(d);
  const NodeId before = state.waits_for(node);
  if (!before.valid() && state.is_together(node))
    return device + " has come to `" + cell(program.table.entries[node.value]) + "`, which runs together with device " +
           std::to_string(*state.absent(node));
  if (before.valid() && !program.is_message(before))
    return device + " has come to " +
           (program.is_message(node) ? message_text(program, cell, program.message(node))
                                     : "`" + cell(program.table.entries[node.value]) + "`") +
           ", which needs " + cell.on(program.table.entries[before.value], program.table.device_of(before.value));
  const Message& message = program.message(before.valid() ? before : node);
  const Edge& edge = program.edges[message.edge.value];
  const bool sends = edge.source.value == d;
  return device + (sends ? " sends " : " receives ") + message_text(program, cell, message) +
         (sends ? " to device " : " from device ") + std::to_string(sends ? edge.target.value : edge.source.value);
}

}  // namespace

bool verify(const Program& program, const Schedule& schedule, Diagnostics& sink) {
  Rendezvous state(program);
  if (state.finishes()) return true;
  const std::vector<std::uint32_t> ring = state.ring();
  const CellText cell(schedule);
  Diagnostic diagnostic;
  diagnostic.kind = "deadlock";
  if (ring.size() == 1)
    diagnostic.message = "device " + std::to_string(ring[0]) + " waits for itself";
  else if (ring.size() == 2)
    diagnostic.message =
        "devices " + std::to_string(ring[0]) + " and " + std::to_string(ring[1]) + " wait for each other";
  else
    diagnostic.message = std::to_string(ring.size()) + " devices wait for each other in a ring";
  constexpr std::size_t kMostLines = 24;
  for (std::size_t i = 0; i < ring.size() && i < kMostLines; ++i)
    diagnostic.notes.push_back(why(program, cell, state, ring[i]));
  if (ring.size() > kMostLines) diagnostic.notes.push_back("and so on: " + std::to_string(ring.size()) + " devices");
  diagnostic.notes.push_back("a send waits for its receive: no message is buffered");
  sink.add(std::move(diagnostic));
  return false;
}

}  // namespace stave
