// What is left of a table when no device can go on: the first entry of each that cannot run, and for every entry what
// keeps it back. A graph for Boost, over the table itself: nothing is copied.
#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/table_needs.h"
#include "core/table.h"

namespace stave {

/// Vertices are positions. An edge leads to an entry that must run before: one that it needs and that has not run, or,
/// for an entry that is not the first left of its device, that first one: a whole stretch of the row is one edge.
class Blocked {
 public:
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    friend bool operator==(const Edge&, const Edge&) = default;
  };

  /// `heads[d]` is the first position of device d that has not run, or the end of its row.
  Blocked(const Table& table, const TableNeeds& needs, const std::vector<std::uint32_t>& heads)
      : table_(table), needs_(needs), heads_(heads) {}

  std::uint32_t size() const { return table_.size(); }
  std::uint32_t head(std::uint32_t position) const { return heads_[table_.device_of(position).value]; }
  bool has_run(std::uint32_t position) const { return position < head(position); }

  /// Into a buffer of the graph: valid until the next call.
  const std::vector<Edge>& out_edges(std::uint32_t position) const {
    edges_.clear();
    needs_.for_each(position, [&](std::uint32_t needed, std::uint16_t) {
      if (!has_run(needed)) edges_.push_back({position, needed});
    });
    if (head(position) != position) edges_.push_back({position, head(position)});
    return edges_;
  }

 private:
  const Table& table_;
  const TableNeeds& needs_;
  const std::vector<std::uint32_t>& heads_;
  mutable std::vector<Edge> edges_;
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
