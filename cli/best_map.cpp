#include "cli/best_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/machine_price.h"
#include "cli/report.h"
#include "compiler/expansion.h"
#include "scheduler/mapping.h"

namespace stave {

namespace {

/// As `--map` takes it: "0..4,8..12".
std::string text_of(const Mapping& map) {
  std::string result;
  for (std::size_t i = 0; i < map.size();) {
    std::size_t end = i + 1;
    while (end < map.size() && map[end] == map[end - 1] + 1) ++end;
    result += fmt::format("{}{}", result.empty() ? "" : ",", map[i]);
    if (end > i + 1) result += fmt::format("..{}", map[end - 1] + 1);
    i = end;
  }
  return result;
}

/// The shortest of the mappings that were tried, the first one first where several are alike.
class Shortest {
 public:
  void add(double makespan, const Mapping& map) {
    const auto at = std::ranges::upper_bound(all_, makespan, {}, &std::pair<double, Mapping>::first);
    if (std::ranges::any_of(all_, [&](const auto& each) { return each.second == map; })) return;
    all_.insert(at, {makespan, map});
    if (all_.size() > kMost) all_.pop_back();
  }
  const std::vector<std::pair<double, Mapping>>& all() const { return all_; }

 private:
  static constexpr std::size_t kMost = 16;
  std::vector<std::pair<double, Mapping>> all_;
};

/// With all that messages contend for.
struct Priced {
  double makespan = 0;
  bool contends = false;
};

std::optional<Priced> price_on(const Mapping& map, const Loaded& loaded, const std::vector<Argument>& arguments) {
  Loaded there = loaded;
  there.machine = std::make_shared<ModelPrices>(loaded.machine->on(map));
  there.prices = there.machine;
  Built built;
  const Result<Outcome> outcome = build(built, there, arguments, Step::Priced);
  if (!outcome || outcome.value() != Outcome::Done) return std::nullopt;
  const Report& report = *built.report;
  return Priced{static_cast<double>(report.makespan) / static_cast<double>(report.ticks_per_unit), built.contends};
}

/// Which devices of a node share a link makes no difference where messages contend for nothing. With it: moves a device to
/// another place of its node, or swaps it with the one there, as long as that helps.
class Regrouping {
 public:
  Regrouping(const Loaded& loaded, const std::vector<Argument>& arguments) : loaded_(loaded), arguments_(arguments) {}

  void improve(Mapping& map, Priced& best) {
    for (std::size_t d = 0; d < map.size(); ++d)
      for (const std::uint32_t place : beside(map[d])) {
        if (tries_ == kMostTries) return;
        Mapping other = map;
        if (const auto taken = std::ranges::find(other, place); taken != other.end()) *taken = map[d];
        other[d] = place;
        ++tries_;
        const std::optional<Priced> priced = price_on(other, loaded_, arguments_);
        if (!priced || priced->makespan >= best.makespan) continue;
        best = *priced;
        map = std::move(other);
        return improve(map, best);
      }
  }
  std::size_t tries() const { return tries_; }

 private:
  static constexpr std::size_t kMostTries = 256;

  /// The other places of its node, if links are shared by fewer than all of its accelerators.
  std::vector<std::uint32_t> beside(std::uint32_t place) const {
    const Cluster& cluster = loaded_.machine->cluster();
    const std::uint32_t width = loaded_.machine->model().parallel.width();
    const Node& node = cluster.nodes[cluster.node_of(place * width)];
    std::vector<std::uint32_t> result;
    if (std::ranges::none_of(cluster.links,
                             [&](const Link& link) { return link.shared_by > 1 && link.shared_by < node.count; }))
      return result;
    for (std::uint32_t other = (node.first + width - 1) / width; (other + 1) * width <= node.first + node.count; ++other)
      if (other != place) result.push_back(other);
    return result;
  }

  const Loaded& loaded_;
  const std::vector<Argument>& arguments_;
  std::size_t tries_ = 0;
};

}  // namespace

Failure no_best_map(const char* command) {
  return Failure{fmt::format("`{}` takes no --map best: it is found for one schedule with one set of parameters", command)};
}

Result<std::string> place_best(Loaded& loaded, const std::vector<Argument>& arguments) {
  if (!loaded.ok() || loaded.machine == nullptr) return std::string();
  if (loaded.prices != loaded.machine)
    return Failure{"--map best asks what each place costs, and --costs says that all cost the same"};
  // What is wrong is said when the schedule is built.
  Diagnostics unsaid;
  const Expanded bare = expand(*loaded.compiled, arguments, unsaid);
  if (bare.outcome != Outcome::Done) return std::string();
  const ModelPrices& machine = *loaded.machine;
  const Parallel& parallel = machine.model().parallel;
  const std::uint64_t width = parallel.width();
  if (bare.schedule->devices * width * parallel.data > machine.cluster().size) return std::string();
  MappingProblem problem{machine.cluster(), bare.schedule->devices, static_cast<std::uint32_t>(width), parallel.data, {}};
  Shortest shortest;
  problem.makespan = [&](const Mapping& map) {
    Diagnostics why;
    const std::optional<double> makespan = makespan_on(machine.on(map), *loaded.compiled, arguments, why);
    if (makespan) shortest.add(*makespan, map);
    return makespan;
  };
  MappingResult result = find_mapping(problem);
  if (!result.best) return std::string();
  // It was asked for as if messages contended for nothing.
  std::optional<Priced> best = price_on(*result.best, loaded, arguments);
  const bool contends = best && best->contends;
  Regrouping regrouping(loaded, arguments);
  if (contends) {
    for (const auto& [without, map] : shortest.all()) {
      std::optional<Priced> other = price_on(map, loaded, arguments);
      if (!other || other->makespan >= best->makespan) continue;
      best = other;
      result.best = map;
    }
    regrouping.improve(*result.best, *best);
    result.makespan = best->makespan;
    if (result.in_order) {
      Mapping in_order(bare.schedule->devices);
      std::iota(in_order.begin(), in_order.end(), 0);
      const std::optional<Priced> priced = price_on(in_order, loaded, arguments);
      result.in_order = priced ? std::optional(priced->makespan) : std::nullopt;
    }
  }
  std::string found = fmt::format("--map {}: {} us, ", text_of(*result.best), number_text(result.makespan));
  if (contends && result.tried > 1)
    found += fmt::format("with what messages contend for the shortest of the {} best without, of ", shortest.all().size());
  else if (result.tried > 1 || !result.exact)
    found += "the shortest of ";
  if (result.exact && result.tried == 1)
    found += "and all places are alike";
  else
    found += result.exact ? fmt::format("all {} that can differ", result.tried)
                          : fmt::format("{} tried by a local search", result.tried);
  if (regrouping.tries() > 0) found += fmt::format(", and {} with other places of a node", regrouping.tries());
  if (result.tried > 1) found += result.in_order ? fmt::format("; in order {} us", number_text(*result.in_order)) : "; in order it cannot run";
  loaded.machine = std::make_shared<ModelPrices>(machine.on(*result.best));
  loaded.prices = loaded.machine;
  return found;
}

}  // namespace stave
