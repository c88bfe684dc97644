#include "scheduler/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/check.h"

namespace stave {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Search {
 public:
  explicit Search(const PartitionProblem& problem) : problem_(problem), sums_(problem.stages) {
    for (std::uint32_t s = 0; s < problem.stages; ++s) {
      sums_[s].assign(1, 0);
      for (double each : problem.load[s]) sums_[s].push_back(sums_[s].back() + each);
    }
  }

  PartitionResult all() {
    PartitionResult result;
    Split uniform(problem_.stages, problem_.layers / problem_.stages);
    for (std::uint32_t s = 0; s < problem_.layers % problem_.stages; ++s) ++uniform[s];
    result.uniform = priced(uniform);
    result.least_slowest = priced(least_slowest(0));
    // Ends that count for more than they are get fewer layers.
    std::vector<Split> starts = {uniform, result.least_slowest.layers};
    for (const double weight : {0.1, 0.2, 0.4}) starts.push_back(least_slowest(weight));
    for (const Split& start : starts) climb(start);
    for (const auto& [split, makespan] : known_)
      if (makespan && (!result.best || *makespan < *result.best->makespan)) result.best = priced(split);
    result.tried = known_.size();
    return result;
  }

 private:
  double load(std::uint32_t stage, std::uint32_t first, std::uint32_t end) const {
    return sums_[stage][end] - sums_[stage][first] + (stage == 0 ? problem_.first_load : 0) +
           (stage + 1 == problem_.stages ? problem_.last_load : 0);
  }

  /// Of the splits whose slowest stage takes least, the one with the least sum of squares. Stages count for more by
  /// `weight` the nearer they are to an end.
  Split least_slowest(double weight) const {
    const std::uint32_t stages = problem_.stages;
    const std::uint32_t layers = problem_.layers;
    using Value = std::pair<double, double>;
    std::vector<std::vector<Value>> best(stages + 1, std::vector<Value>(layers + 1, {kNever, kNever}));
    std::vector<std::vector<std::uint32_t>> from(stages + 1, std::vector<std::uint32_t>(layers + 1, 0));
    best[0][0] = {0, 0};
    const double middle = (stages - 1) / 2.0;
    for (std::uint32_t s = 0; s < stages; ++s) {
      const double away = middle > 0 ? std::abs(s - middle) / middle : 0;
      const double factor = 1 + weight * away;
      for (std::uint32_t end = s + 1; end + (stages - 1 - s) <= layers; ++end)
        for (std::uint32_t first = s; first < end; ++first) {
          const double one = factor * load(s, first, end);
          const Value value = {std::max(best[s][first].first, one), best[s][first].second + one * one};
          if (value < best[s + 1][end]) {
            best[s + 1][end] = value;
            from[s + 1][end] = first;
          }
        }
    }
    Split result(stages);
    for (std::uint32_t s = stages, end = layers; s > 0; --s) {
      result[s - 1] = end - from[s][end];
      end = from[s][end];
    }
    return result;
  }

  PricedSplit priced(const Split& split) {
    PricedSplit result{split, makespan(split), 0};
    std::uint32_t at = 0;
    for (std::uint32_t s = 0; s < split.size(); at += split[s++])
      result.slowest = std::max(result.slowest, load(s, at, at + split[s]));
    return result;
  }

  bool exhausted() const { return known_.size() >= problem_.most_tries; }

  std::optional<double> makespan(const Split& split) {
    const auto found = known_.find(split);
    if (found != known_.end()) return found->second;
    return known_[split] = problem_.makespan(split);
  }

  /// Near stages first; the first move that helps is taken.
  void climb(Split at) {
    double best = makespan(at).value_or(kNever);
    const std::uint32_t stages = problem_.stages;
    for (bool better = true; better;) {
      better = false;
      for (std::uint32_t far = 1; far < stages && !better; ++far)
        for (std::uint32_t i = 0; i + far < stages && !better; ++i)
          for (const bool down : {true, false}) {
            const std::uint32_t giver = down ? i : i + far;
            const std::uint32_t taker = down ? i + far : i;
            if (at[giver] <= 1 || exhausted()) continue;
            Split next = at;
            --next[giver];
            ++next[taker];
            const double value = makespan(next).value_or(kNever);
            if (value >= best) continue;
            best = value;
            at = std::move(next);
            better = true;
            break;
          }
    }
  }

  const PartitionProblem& problem_;
  /// Sums of the loads before each layer. Shape: [stage][layers + 1].
  std::vector<std::vector<double>> sums_;
  std::map<Split, std::optional<double>> known_;
};

}  // namespace

PartitionResult partition(const PartitionProblem& problem) {
  STAVE_CHECK(problem.stages > 0 && problem.layers >= problem.stages, "a split with a stage without layers");
  return Search(problem).all();
}

}  // namespace stave
