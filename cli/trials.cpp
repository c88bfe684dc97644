#include "cli/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "cli/report.h"
#include "compiler/rational.h"
#include "scheduler/contention/trials.h"

namespace stave {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kMostTrials = 1'000'000;
/// Trials times nodes of the program.
constexpr std::uint64_t kMostWork = std::uint64_t{1} << 33;
constexpr double kMostFactor = 1000;

/// Shares of the trials, with the words for them.
constexpr std::array<std::pair<double, std::string_view>, 6> kQuantiles = {
    {{0, "least"}, {0.05, "5 %"}, {0.5, "50 %"}, {0.95, "95 %"}, {0.99, "99 %"}, {1, "greatest"}}};

Result<std::pair<DeviceId, double>> straggler_of(const std::string& text, std::uint32_t devices) {
  const std::size_t equals = text.find('=');
  const std::optional<Rational> device = exact_number(text.substr(0, equals));
  const std::optional<Rational> factor =
      equals == std::string::npos ? std::nullopt : exact_number(text.substr(equals + 1));
  if (!device || !factor)
    return Failure{fmt::format("--straggler takes DEVICE=FACTOR, as 2=1.3, and not `{}`", printable(text))};
  const double number = device->to_double();
  if (!device->whole() || number < 0 || number >= devices)
    return Failure{fmt::format("--straggler: the schedule has no device {}, only 0 to {}", number_text(number), devices - 1)};
  if (!(factor->to_double() > 0 && factor->to_double() <= kMostFactor))
    return Failure{fmt::format("--straggler: the factor of device {} is {}; it must lie above 0, and at most {}",
                               number_text(number), number_text(factor->to_double()), kMostFactor)};
  return std::pair(DeviceId(static_cast<std::uint32_t>(number)), factor->to_double());
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double each : values) sum += each;
  return sum / static_cast<double>(values.size());
}

}  // namespace

void TrialOptions::add_to(CLI::App& command) {
  command.add_option("--trials", trials, fmt::format("price it so often with lengths drawn by chance; 1 to {}", kMostTrials))
      ->check(whole_between(1, kMostTrials))
      ->type_name("N");
  command.add_option("--jitter", jitter, "of trials: the standard deviation of each op's and message's length,\nas a share of it; 0 to 1")
      ->check(between(0, 1))
      ->type_name("X");
  command.add_option("--straggler", stragglers, "of trials: a device whose computing takes so many times longer; may be\ngiven more than once")
      ->type_name("DEVICE=FACTOR")
      ->allow_extra_args(false);
  command.add_option("--seed", seed, "of trials")->check(whole_between(0, UINT64_MAX))->type_name("N")->capture_default_str();
}

Result<std::vector<double>> try_by_chance(const One& one, const TrialOptions& options) {
  if (options.trials == 0) {
    if (options.jitter > 0 || !options.stragglers.empty())
      return Failure{"--jitter and --straggler are of trials: --trials N says how many"};
    return std::vector<double>();
  }
  const Program& program = *one.built.program;
  if (std::uint64_t{options.trials} * program.nodes() > kMostWork)
    return Failure{fmt::format("{} trials of {} ops and messages are too many", options.trials, program.nodes())};
  Chance chance;
  chance.trials = options.trials;
  chance.jitter = options.jitter;
  chance.seed = options.seed;
  for (const std::string& text : options.stragglers) {
    const Result<std::pair<DeviceId, double>> straggler = straggler_of(text, program.table.devices());
    if (!straggler) return straggler.failure();
    if (std::ranges::count(chance.stragglers, straggler.value().first, &std::pair<DeviceId, double>::first) != 0)
      return Failure{fmt::format("--straggler: device {} is given twice", straggler.value().first.value)};
    chance.stragglers.push_back(straggler.value());
  }
  double slower = 1;
  for (const auto& [device, factor] : chance.stragglers) slower = std::max(slower, factor);
  // No length drawn is longer: its numbers have at most six deviations.
  slower *= (1 + 6 * chance.jitter) * static_cast<double>(parts_of_tick(*one.built.costs));
  if (!fits_in_ticks(one.loaded.machine.get(), program, *one.built.costs, slower))
    return Failure{"--trials: all ops and messages together, as much longer as they may be drawn, pass 2^61 ticks"};
  const Contention contention = one.loaded.machine == nullptr
                                    ? Contention()
                                    : contention_of(*one.loaded.machine, program, *one.built.costs);
  Progress progress("trials");
  return makespans_of(program, *one.built.costs, one.loaded.rules, contention, chance,
                      [&](std::uint32_t trial) { progress.show(trial, options.trials); });
}

std::string trials_text(const Built& built, const TrialOptions& options, const std::vector<double>& makespans) {
  std::string result = fmt::format("\n{} trials, jitter {}, seed {}\n", makespans.size(), options.jitter, options.seed);
  std::vector<std::vector<std::string>> rows = {{"", "makespan", "over the price"}};
  const auto add = [&](std::string_view name, double ticks) {
    const double over = built.report->makespan == 0 ? 0 : 100 * (ticks / static_cast<double>(built.report->makespan) - 1);
    rows.push_back({std::string(name),
                    number_text(ticks / static_cast<double>(built.report->ticks_per_unit)) + unit_text(built),
                    fmt::format("{:+.2f} %", over)});
  };
  for (const auto& [share, name] : kQuantiles) add(name, quantile(makespans, share));
  add("mean", mean_of(makespans));
  return result + aligned(rows);
}

Json trials_json(const Built& built, const TrialOptions& options, const std::vector<double>& makespans) {
  const auto in_units = [&](double ticks) { return ticks / static_cast<double>(built.report->ticks_per_unit); };
  Json quantiles = Json::array();
  for (const auto& [share, name] : kQuantiles)
    quantiles.push_back({{"share", share}, {"makespan", in_units(quantile(makespans, share))}});
  return {{"count", makespans.size()},
          {"jitter", options.jitter},
          {"seed", options.seed},
          {"mean", in_units(mean_of(makespans))},
          {"quantiles", quantiles}};
}

}  // namespace stave
