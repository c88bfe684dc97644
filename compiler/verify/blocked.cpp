#include "compiler/verify/blocked.h"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/pending/queue.hpp>
#include <boost/property_map/property_map.hpp>

#include "core/check.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint64_t kMostEdges = 10'000'000;

/// What the searches share, so that each takes time only for what it meets.
struct Searched {
  std::vector<boost::default_color_type> colour;
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> depth;
  std::vector<std::uint32_t> met;
  std::uint64_t edges = 0;
};

/// Thrown to end Boost's search, which knows no other way.
struct SearchEnds {};

class Visitor : public boost::default_bfs_visitor {
 public:
  Visitor(std::uint32_t from, std::uint32_t shortest, std::uint32_t& closes, Searched& searched)
      : from_(from), shortest_(shortest), closes_(&closes), searched_(&searched) {}

  void discover_vertex(std::uint32_t position, const Blocked&) { searched_->met.push_back(position); }
  void examine_vertex(std::uint32_t position, const Blocked&) {
    if (searched_->depth[position] + 1 >= shortest_ || searched_->edges > kMostEdges) throw SearchEnds();
  }
  void examine_edge(Blocked::Edge edge, const Blocked&) {
    ++searched_->edges;
    if (edge.to != from_) return;
    *closes_ = edge.from;
    throw SearchEnds();
  }
  void tree_edge(Blocked::Edge edge, const Blocked&) {
    searched_->before[edge.to] = edge.from;
    searched_->depth[edge.to] = searched_->depth[edge.from] + 1;
  }

 private:
  std::uint32_t from_;
  std::uint32_t shortest_;
  std::uint32_t* closes_;
  Searched* searched_;
};

}  // namespace

std::vector<std::uint32_t> shortest_cycle(const Blocked& graph, const std::vector<std::uint32_t>& heads) {
  Searched searched;
  searched.colour.assign(graph.size(), boost::white_color);
  searched.before.assign(graph.size(), kNone);
  searched.depth.assign(graph.size(), 0);
  std::vector<std::uint32_t> cycle;
  for (std::uint32_t first : heads) {
    if (first >= graph.size() || graph.head(first) != first || searched.edges > kMostEdges) continue;
    const std::uint32_t head = graph.vertex(first);
    std::uint32_t closes = kNone;
    const std::uint32_t shortest = cycle.empty() ? kNone : static_cast<std::uint32_t>(cycle.size());
    searched.depth[head] = 0;
    boost::queue<std::uint32_t> queue;
    try {
      boost::breadth_first_visit(
          graph, head, queue, Visitor(head, shortest, closes, searched),
          boost::make_iterator_property_map(searched.colour.begin(), boost::identity_property_map()));
    } catch (const SearchEnds&) {
    }
    if (closes != kNone) {
      cycle.clear();
      for (std::uint32_t at = closes; at != head; at = searched.before[at]) cycle.push_back(at);
      cycle.push_back(head);
      std::reverse(cycle.begin(), cycle.end());
    }
    for (std::uint32_t position : searched.met) searched.colour[position] = boost::white_color;
    searched.met.clear();
  }
  STAVE_CHECK(!cycle.empty(), "devices that cannot go on, and no cycle");
  return cycle;
}

}  // namespace stave
