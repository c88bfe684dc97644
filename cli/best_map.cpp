#include "cli/best_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

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
  problem.makespan = [&](const Mapping& map) {
    Diagnostics why;
    return makespan_on(machine.on(map), *loaded.compiled, arguments, why);
  };
  const MappingResult result = find_mapping(problem);
  if (!result.best) return std::string();
  std::string found = fmt::format("--map {}: {} us, ", text_of(*result.best), number_text(result.makespan));
  if (result.exact && result.tried == 1)
    found += "and all places are alike";
  else if (result.exact)
    found += fmt::format("the shortest of all {} that can differ", result.tried);
  else
    found += fmt::format("the shortest of {} tried by a local search", result.tried);
  if (result.tried > 1) found += result.in_order ? fmt::format("; in order {} us", number_text(*result.in_order)) : "; in order it cannot run";
  const auto is_shared = [](const Link& link) { return link.shared_by > 1 || !link.both_ways; };
  if (loaded.rules.changes_order() || std::ranges::any_of(machine.cluster().links, is_shared))
    found += " (priced as if messages contended for nothing)";
  loaded.machine = std::make_shared<ModelPrices>(machine.on(*result.best));
  loaded.prices = loaded.machine;
  return found;
}

}  // namespace stave
