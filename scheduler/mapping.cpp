#include "scheduler/mapping.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace stave {

namespace {

/// The places of a cluster, and which of the free ones are alike.
class Places {
 public:
  explicit Places(const MappingProblem& problem)
      : cluster_(problem.cluster),
        width_(problem.width),
        count_(problem.cluster.size / (problem.width * problem.copies)),
        taken_(count_, false) {
    std::vector<bool> apart(cluster_.size, false);
    for (const Cluster::Pair& pair : cluster_.by_accelerators) apart[pair.a] = apart[pair.b] = true;
    std::vector<bool> named(cluster_.nodes.size(), false);
    for (const Cluster::Pair& pair : cluster_.by_nodes) named[pair.a] = named[pair.b] = true;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::string, std::string>, std::size_t>
        known;
    for (std::uint32_t n = 0; n < cluster_.nodes.size(); ++n) {
      const Node& node = cluster_.nodes[n];
      bool even = node.first % width_ == 0 && node.count % width_ == 0 && node.first + node.count <= count_ * width_;
      for (std::uint32_t a = node.first; a < node.first + node.count; ++a) even = even && !apart[a];
      even_.push_back(even);
      if (!even) {
        alike_.push_back({n});
        continue;
      }
      const auto [at, is_new] = known.insert(
          {{node.accelerator, node.count, node.inside, node.network, node.region, named[node.group] ? node.name : ""}, alike_.size()});
      if (is_new) alike_.emplace_back();
      alike_[at->second].push_back(n);
    }
  }

  std::uint32_t count() const { return count_; }
  std::uint32_t node_of(std::uint32_t place) const { return cluster_.node_of(place * width_); }
  bool alike(std::uint32_t a, std::uint32_t b) const { return node_of(a) == node_of(b) && even_[node_of(a)]; }

  void take(std::uint32_t place) { set(place, true); }
  void give_back(std::uint32_t place) { set(place, false); }

  /// The same with the places of a node that are alike in the order of the devices: the first ones of the node, or, where
  /// fewer than all share a link, one of each that share before a second.
  Mapping tidy(Mapping mapping) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> left;
    for (std::uint32_t& place : mapping) {
      const std::uint32_t node = node_of(place);
      if (!even_[node]) continue;
      std::vector<std::uint32_t>& places = left[node];
      if (places.empty()) places = spread(cluster_.nodes[node]);
      place = places.back();
      places.pop_back();
    }
    return mapping;
  }

  /// One of each that are alike.
  std::vector<std::uint32_t> free() const {
    std::vector<std::uint32_t> result;
    for (const auto& [n, taken] : touched_) add_free(n, result);
    for (const std::vector<std::uint32_t>& nodes : alike_) {
      const auto untouched = std::find_if(nodes.begin(), nodes.end(), [&](std::uint32_t n) { return !touched_.contains(n); });
      if (untouched != nodes.end()) add_free(*untouched, result);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  /// The places of an even node, the last ones to be taken first.
  std::vector<std::uint32_t> spread(const Node& node) const {
    std::uint32_t share = node.count;
    for (const Link& link : cluster_.links)
      if (link.shared_by > 1) share = std::min(share, link.shared_by);
    share = std::max(1u, share / width_);
    const std::uint32_t first = node.first / width_;
    const std::uint32_t end = first + node.count / width_;
    std::vector<std::uint32_t> result;
    for (std::uint32_t i = 0; i < share; ++i)
      for (std::uint32_t place = first + i; place < end; place += share) result.push_back(place);
    std::reverse(result.begin(), result.end());
    return result;
  }

  void set(std::uint32_t place, bool taken) {
    taken_[place] = taken;
    const std::uint32_t node = node_of(place);
    if (taken)
      ++touched_[node];
    else if (--touched_[node] == 0)
      touched_.erase(node);
  }
  void add_free(std::uint32_t n, std::vector<std::uint32_t>& result) const {
    const Node& node = cluster_.nodes[n];
    for (std::uint32_t p = (node.first + width_ - 1) / width_; p < count_ && p * width_ < node.first + node.count; ++p) {
      if (taken_[p]) continue;
      result.push_back(p);
      if (even_[n]) return;
    }
  }

  const Cluster& cluster_;
  std::uint32_t width_ = 1;
  std::uint32_t count_ = 0;
  std::vector<bool> taken_;
  /// Nodes with a place that is taken, and how many of theirs are.
  std::map<std::uint32_t, std::uint32_t> touched_;
  /// Places of a node are alike.
  std::vector<bool> even_;
  /// Nodes that are alike while they are untouched.
  std::vector<std::vector<std::uint32_t>> alike_;
};

class Search {
 public:
  explicit Search(const MappingProblem& problem) : problem_(problem), places_(problem) {}

  MappingResult run() {
    Mapping in_order(problem_.devices);
    std::iota(in_order.begin(), in_order.end(), 0u);
    result_.in_order = price(in_order);
    Mapping begun;
    if (collect(begun)) {
      for (const Mapping& each : all_)
        if (each != in_order) price(places_.tidy(each));
      result_.exact = problem_.copies == 1;
    } else {
      climb(in_order, result_.in_order);
      for (const bool fastest : {true, false}) {
        const Mapping begin = by_speed(fastest);
        climb(begin, price(places_.tidy(begin)));
      }
    }
    if (result_.best) result_.best = places_.tidy(*result_.best);
    return result_;
  }

 private:
  /// Every mapping, up to places that are alike. False if there are too many.
  bool collect(Mapping& begun) {
    if (begun.size() == problem_.devices) {
      all_.push_back(begun);
      return all_.size() < problem_.most_tries;
    }
    for (const std::uint32_t place : places_.free()) {
      places_.take(place);
      begun.push_back(place);
      const bool few = collect(begun);
      begun.pop_back();
      places_.give_back(place);
      if (!few) return false;
    }
    return true;
  }

  std::optional<double> price(const Mapping& mapping) {
    if (result_.tried >= problem_.most_tries) return std::nullopt;
    ++result_.tried;
    const std::optional<double> makespan = problem_.makespan(mapping);
    if (makespan && (!result_.best || *makespan < result_.makespan)) {
      result_.best = mapping;
      result_.makespan = *makespan;
    }
    return makespan;
  }

  void climb(Mapping mapping, std::optional<double> makespan) {
    for (const std::uint32_t place : mapping) places_.take(place);
    while (result_.tried < problem_.most_tries && step(mapping, makespan)) continue;
    for (const std::uint32_t place : mapping) places_.give_back(place);
  }

  /// Whether a step was found that helps.
  bool step(Mapping& mapping, std::optional<double>& makespan) {
    const auto helps = [&] {
      const std::optional<double> found = price(places_.tidy(mapping));
      if (!found || (makespan && *found >= *makespan)) return false;
      makespan = found;
      return true;
    };
    const std::vector<std::uint32_t> free = places_.free();
    for (std::uint32_t& place : mapping)
      for (const std::uint32_t to : free) {
        if (places_.alike(place, to)) continue;
        const std::uint32_t from = std::exchange(place, to);
        if (helps()) {
          places_.give_back(from);
          places_.take(to);
          return true;
        }
        place = from;
      }
    for (std::size_t i = 0; i < mapping.size(); ++i)
      for (std::size_t j = i + 1; j < mapping.size(); ++j) {
        if (places_.alike(mapping[i], mapping[j])) continue;
        std::swap(mapping[i], mapping[j]);
        if (helps()) return true;
        std::swap(mapping[i], mapping[j]);
      }
    return false;
  }

  /// The nodes with the fastest, or slowest, accelerators first.
  Mapping by_speed(bool fastest) const {
    Mapping result(places_.count());
    std::iota(result.begin(), result.end(), 0u);
    const auto peak = [&](std::uint32_t place) {
      const auto& peaks = problem_.cluster.kind_of(place * problem_.width).peak;
      return *std::max_element(peaks.begin(), peaks.end());
    };
    std::stable_sort(result.begin(), result.end(), [&](std::uint32_t a, std::uint32_t b) { return fastest ? peak(a) > peak(b) : peak(a) < peak(b); });
    result.resize(problem_.devices);
    return result;
  }

  const MappingProblem& problem_;
  Places places_;
  std::vector<Mapping> all_;
  MappingResult result_;
};

}  // namespace

MappingResult find_mapping(const MappingProblem& problem) { return Search(problem).run(); }

}  // namespace stave
