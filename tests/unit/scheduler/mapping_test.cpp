// Mappings: held against all of them on clusters small enough.
#include "scheduler/mapping.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "doctest/doctest.h"

namespace stave {

namespace {

constexpr const char* kKinds =
    "[device.new]\npeak = { bf16 = '2 TFLOP/s' }\nmemory = '1 GB'\nmemory_bandwidth = '1 TB/s'\n"
    "[device.old]\npeak = { bf16 = '1 TFLOP/s' }\nmemory = '1 GB'\nmemory_bandwidth = '1 TB/s'\n"
    "[link.in]\nlatency = '1 us'\nbandwidth = '4 GB/s'\n[link.net]\nlatency = '1 us'\nbandwidth = '1 GB/s'\n"
    "[link.wire]\nlatency = '1 us'\nbandwidth = '8 GB/s'\n";

Cluster cluster_of(const std::string& nodes) {
  Sources sources;
  Diagnostics sink;
  const std::optional<Cluster> cluster = read_cluster(sources, sources.add("cluster", kKinds + nodes), sink);
  for (const Diagnostic& each : sink.all()) MESSAGE(each.message);
  REQUIRE(cluster);
  return *cluster;
}

std::string node(const char* device, int count, int copies) {
  return "[[node]]\ndevice = '" + std::string(device) + "'\ncount = " + std::to_string(count) +
         "\ncopies = " + std::to_string(copies) + "\ninside = 'in'\nnetwork = 'net'\n";
}

/// A cost that knows of a place what a price knows, its device and its links: random for each device and pair of them.
class RandomCost {
 public:
  RandomCost(const Cluster& cluster, std::uint32_t width, std::uint32_t seed)
      : cluster_(cluster), width_(width), random_(seed) {}

  double operator()(const Mapping& map) {
    double result = 0;
    for (std::size_t a = 0; a < map.size(); ++a) {
      result += value({a, a, cluster_.nodes[cluster_.node_of(map[a] * width_)].accelerator});
      for (std::size_t b = 0; b < a; ++b) result += value({a, b, cluster_.link(map[a] * width_, map[b] * width_)});
    }
    return result;
  }

 private:
  double value(std::array<std::size_t, 3> key) {
    const auto [at, is_new] = values_.insert({key, 0});
    if (is_new) at->second = std::uniform_real_distribution<double>(0, 1)(random_);
    return at->second;
  }

  const Cluster& cluster_;
  std::uint32_t width_;
  std::mt19937 random_;
  std::map<std::array<std::size_t, 3>, double> values_;
};

/// Every way to put the devices on `places`.
double least_of_all(std::uint32_t devices, std::uint32_t places, RandomCost& cost) {
  std::vector<std::uint32_t> order(places);
  std::iota(order.begin(), order.end(), 0u);
  double least = 1e9;
  do least = std::min(least, cost({order.begin(), order.begin() + devices}));
  while (std::next_permutation(order.begin(), order.end()));
  return least;
}

}  // namespace

TEST_CASE("all mappings that can differ: as short as the shortest of all") {
  const std::string wire = "[[between]]\ndevices = [1, 4]\nlink = 'wire'\n";
  for (const std::string& nodes : {node("new", 2, 3), node("new", 4, 1) + node("old", 2, 1), node("new", 3, 2) + wire,
                                   node("new", 2, 2) + node("old", 1, 2), node("old", 6, 1)})
    for (const std::uint32_t width : {1u, 2u})
      for (std::uint32_t seed = 0; seed < 6; ++seed) {
        CAPTURE(nodes);
        CAPTURE(width);
        CAPTURE(seed);
        const Cluster cluster = cluster_of(nodes);
        const std::uint32_t devices = width == 1 ? 4 : 2;
        RandomCost cost(cluster, width, seed);
        MappingProblem problem{cluster, devices, width, 1, [&](const Mapping& map) { return cost(map); }, 100000};
        const MappingResult found = find_mapping(problem);
        REQUIRE(found.best);
        CHECK(found.exact);
        CHECK(found.makespan == least_of_all(devices, cluster.size / width, cost));
        CHECK(cost(*found.best) == found.makespan);
        CHECK(found.tried <= 361);
      }
}

TEST_CASE("places that are alike are tried once") {
  const Cluster cluster = cluster_of(node("new", 8, 128));
  std::size_t asked = 0;
  const MappingResult found =
      find_mapping({cluster, 3, 1, 1, [&](const Mapping&) { return static_cast<double>(++asked); }, 1000});
  // Three devices in one node, a pair of them and the third in another (three ways), or three nodes.
  CHECK(found.tried == 5);
  CHECK(asked == 5);
  CHECK(found.exact);
}

TEST_CASE("devices of a node are spread over the links that fewer than all of it share") {
  const std::string nodes =
      "[[node]]\ndevice = 'new'\ncount = 4\ncopies = 2\ninside = 'net'\nnetwork = 'card'\n"
      "[link.card]\nlatency = '1 us'\nbandwidth = '1 GB/s'\nshared_by = 2\n";
  const Cluster cluster = cluster_of(nodes);
  const auto find = [&](auto makespan) { return find_mapping({cluster, 4, 1, 1, makespan}); };
  // Messages across nodes are the dearer ones.
  const MappingResult found = find([&](const Mapping& map) -> std::optional<double> {
    return (map[0] / 4 != map[1] / 4) + (map[2] / 4 != map[3] / 4) + 2 * (map[0] / 4 == map[2] / 4);
  });
  REQUIRE(found.best);
  CHECK(*found.best == Mapping{0, 2, 4, 6});
  CHECK(found.exact);
}

TEST_CASE("a local search stops, and is no longer than places in order") {
  const Cluster cluster = cluster_of(node("new", 4, 4) + node("old", 4, 4));
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    RandomCost cost(cluster, 1, seed);
    const MappingResult found =
        find_mapping({cluster, 12, 1, 1, [&](const Mapping& map) { return cost(map); }, 300});
    REQUIRE(found.best);
    CHECK_FALSE(found.exact);
    CHECK(found.tried <= 300);
    CHECK(found.makespan < *found.in_order);
    // The best is made tidy, which changes nothing of its cost but the rounding of a sum.
    CHECK(cost(*found.best) == doctest::Approx(found.makespan));
    Mapping sorted = *found.best;
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  }
}

TEST_CASE("where nothing can run there is no best") {
  const Cluster cluster = cluster_of(node("new", 2, 2));
  const MappingResult found = find_mapping({cluster, 4, 1, 1, [](const Mapping&) { return std::nullopt; }, 10});
  CHECK_FALSE(found.best);
  CHECK_FALSE(found.in_order);
}

}  // namespace stave
