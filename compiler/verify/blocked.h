// What is left of a table when no device can go on: the first entry of each that cannot run, and for every entry what
// keeps it back. A graph for Boost, over the table itself: nothing is copied.
#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "core/lanes.h"
#include "core/table.h"

namespace stave {

/// Vertices are positions; a block is one, the first of its positions. An edge leads to an entry that must run before: one
/// that it needs and that has not run, or, for an entry that is not the first left of its lane, that first one: a whole
/// stretch of the row is one edge.
class Blocked {
 public:
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    friend bool operator==(const Edge&, const Edge&) = default;
  };

  /// `walk` has come to where nothing can run.
  Blocked(const Table& table, const Lanes& lanes, const TableNeeds& needs, const TableWalk& walk)
      : table_(table), lanes_(lanes), needs_(needs), walk_(walk), block_of_(blocks_of(table)) {}

  std::uint32_t size() const { return table_.size(); }
  std::uint32_t head(std::uint32_t position) const { return walk_.heads()[lanes_.lane(position)]; }
  bool has_run(std::uint32_t position) const { return walk_.has_run(position); }

  /// The vertex of a position.
  std::uint32_t vertex(std::uint32_t position) const { return members(position).front(); }
  /// What runs together with an entry, itself among it.
  std::span<const std::uint32_t> members(std::uint32_t position) const {
    if (block_of_.empty() || block_of_[position] == UINT32_MAX) {
      alone_ = position;
      return std::span<const std::uint32_t>(&alone_, 1);
    }
    return table_.blocks[block_of_[position]];
  }

  /// Into a buffer of the graph: valid until the next call.
  const std::vector<Edge>& out_edges(std::uint32_t position) const {
    edges_.clear();
    if (block_of_.empty() || block_of_[position] == UINT32_MAX)
      add(position, position);
    else
      for (std::uint32_t member : table_.blocks[block_of_[position]]) add(position, member);
    return edges_;
  }

 private:
  void add(std::uint32_t from, std::uint32_t member) const {
    const auto lead_to = [&](std::uint32_t before) {
      if (before != Lanes::kNone && !has_run(before) && vertex(before) != from) edges_.push_back({from, vertex(before)});
    };
    needs_.for_each(member, [&](std::uint32_t needed, std::uint16_t) { lead_to(needed); });
    lead_to(head(member));
    lead_to(lanes_.written_after(member));
  }

  const Table& table_;
  const Lanes& lanes_;
  const TableNeeds& needs_;
  const TableWalk& walk_;
  std::vector<std::uint32_t> block_of_;
  mutable std::vector<Edge> edges_;
  mutable std::uint32_t alone_ = 0;
};

/// A shortest cycle through one of the heads: positions, each keeping back the one before it. The search ends early,
/// with the shortest found so far, after some ten million edges. There must be a device that cannot go on.
std::vector<std::uint32_t> shortest_cycle(const Blocked& graph, const std::vector<std::uint32_t>& heads);

}  // namespace stave

template <>
struct boost::graph_traits<stave::Blocked> {
  using vertex_descriptor = std::uint32_t;
  using edge_descriptor = stave::Blocked::Edge;
  using directed_category = boost::directed_tag;
  using edge_parallel_category = boost::allow_parallel_edge_tag;
  using traversal_category = boost::incidence_graph_tag;
  using out_edge_iterator = std::vector<edge_descriptor>::const_iterator;
  using degree_size_type = std::size_t;
  static vertex_descriptor null_vertex() { return UINT32_MAX; }
};

namespace stave {

inline std::uint32_t source(const Blocked::Edge& edge, const Blocked&) { return edge.from; }
inline std::uint32_t target(const Blocked::Edge& edge, const Blocked&) { return edge.to; }
inline auto out_edges(std::uint32_t position, const Blocked& graph) {
  const std::vector<Blocked::Edge>& edges = graph.out_edges(position);
  return std::pair(edges.begin(), edges.end());
}
inline std::size_t out_degree(std::uint32_t position, const Blocked& graph) { return graph.out_edges(position).size(); }

}  // namespace stave
