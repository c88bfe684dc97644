// stave simulate --trials: the same schedule many times, its ops longer or shorter by chance.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/pipeline.h"
#include "core/result.h"
#include "core/ticks.h"

namespace stave {

struct TrialOptions {
  std::uint32_t trials = 0;
  double jitter = 0;
  std::vector<std::string> stragglers;
  std::uint64_t seed = 1;

  void add_to(CLI::App& command);
};

/// The makespans of all trials, rising, in ticks; empty if none are asked for. Shows progress. Errors: a straggler that is no
/// DEVICE=FACTOR, or no device of the schedule; chance without trials; more trials than can be made.
Result<std::vector<double>> try_by_chance(const One& one, const TrialOptions& options);

std::string trials_text(const Built& built, const TrialOptions& options, const std::vector<double>& makespans);
nlohmann::ordered_json trials_json(const Built& built, const TrialOptions& options, const std::vector<double>& makespans);

}  // namespace stave
