#include "scheduler/stage_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "scheduler/toml.h"

namespace stave {

namespace {

/// The chains of stages that microbatches run through; one of all stages if they share any.
std::vector<std::vector<std::uint32_t>> chains_of(const Schedule& schedule, const Routes& routes) {
  std::vector<std::uint32_t> all(schedule.stages);
  std::iota(all.begin(), all.end(), 0u);
  if (!routes.given()) return {all};
  std::vector<std::vector<std::uint32_t>> result;
  std::vector<std::uint32_t> chain_of(schedule.stages, Routes::kNone);
  for (std::uint32_t m = 0; m < routes.microbatches; ++m) {
    std::uint32_t first = 0;
    while (first < schedule.stages &&
           !(routes.visited(first, m) && routes.before[std::size_t(first) * routes.microbatches + m] == Routes::kNone))
      ++first;
    std::vector<std::uint32_t> chain;
    for (std::uint32_t s = first; s != Routes::kNone && s < schedule.stages; s = routes.step(s, m, 1)) chain.push_back(s);
    if (chain.empty()) continue;
    const std::uint32_t known = chain_of[chain[0]];
    if (known != Routes::kNone) {
      if (result[known] != chain) return {all};
      continue;
    }
    for (const std::uint32_t s : chain) {
      if (chain_of[s] != Routes::kNone) return {all};
      chain_of[s] = static_cast<std::uint32_t>(result.size());
    }
    result.push_back(std::move(chain));
  }
  const bool covered = std::find(chain_of.begin(), chain_of.end(), Routes::kNone) == chain_of.end();
  return covered && !result.empty() ? result : std::vector<std::vector<std::uint32_t>>{all};
}

std::string name_of(const Model& model) { return model.name.empty() ? "the model" : fmt::format("`{}`", model.name); }

}  // namespace

std::vector<LayerRange> ranges_of(const Model& model, const std::vector<std::uint32_t>& blocks) {
  std::vector<LayerRange> result;
  auto at = static_cast<std::uint32_t>(model.front());
  for (const std::uint32_t count : blocks) {
    result.push_back({at, at + count});
    at += count;
  }
  if (!result.empty()) {
    result.front().first = 0;
    result.back().end = static_cast<std::uint32_t>(model.layers.size());
  }
  return result;
}

std::optional<std::vector<LayerRange>> layers_of_stages(const Model& model, const Schedule& schedule, const Routes& routes,
                                                        Diagnostics& sink) {
  std::vector<LayerRange> result(schedule.stages);
  const std::size_t blocks = model.blocks();
  const auto place = [&](std::size_t block) {
    return blocks == 0 ? model.span : model.layers[std::min(model.front() + block, model.layers.size() - 1)].span;
  };
  for (const std::vector<std::uint32_t>& chain : chains_of(schedule, routes)) {
    std::vector<std::uint32_t> counts;
    if (!schedule.sizes.stages.empty()) {
      std::uint64_t sum = 0;
      for (const std::uint32_t s : chain) {
        counts.push_back(schedule.sizes.stages[s]);
        sum += counts.back();
      }
      if (sum != blocks) {
        refuse(sink, "layers-left-over", place(std::min<std::uint64_t>(sum, blocks)),
               fmt::format("{} has {} layers to share out, and `stages` of schedule `{}` has {}", name_of(model), blocks,
                           schedule.name, sum));
        return std::nullopt;
      }
    } else {
      const std::size_t each = blocks / chain.size();
      const std::size_t left = blocks % chain.size();
      if (left > 0) {
        const std::size_t first = blocks - left;
        refuse(sink, "layers-left-over", place(first),
               fmt::format("the {} layers of {} do not divide over {} stages: with {} on each, {} left over", blocks,
                           name_of(model), chain.size(), each,
                           left == 1 ? fmt::format("layer {} is", first)
                                     : fmt::format("layers {} to {} are", first, blocks - 1)),
               "", {"`stages [...]` in the schedule says how many each has; `stave partition` proposes a split"});
        return std::nullopt;
      }
      counts.assign(chain.size(), static_cast<std::uint32_t>(each));
    }
    const std::vector<LayerRange> ranges = ranges_of(model, counts);
    for (std::size_t i = 0; i < chain.size(); ++i) result[chain[i]] = ranges[i];
  }
  return result;
}

}  // namespace stave
