// RunText: what `stave run` prints, as lines or as one JSON object: the heading, the steps, and measured against predicted.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/pipeline.h"
#include "cli/run/arguments.h"
#include "cli/run/trained_model.h"
#include "executor/rendezvous.h"
#include "executor/run.h"
#include "scheduler/costs.h"

namespace stave {

class RunText {
 public:
  /// All must outlive it. `costs_ns` are the schedule's in ns, `clock` says in words what the clock of the run is.
  /// A quiet one says nothing but errors: of several ranks all but the first.
  RunText(const RunArguments& arguments, const Built& built, const TrainedModel& model, const RunOptions& options,
          const Costs& costs_ns, std::string clock, bool is_quiet);

  void heading();
  void step(const StepReport& step);
  void deadlock(const Deadlock& deadlock);
  /// Loss against the bytes' entropy, then predicted against measured.
  void close(const RunReport& report);

  /// The first reason why something could not be written; empty if all was.
  const std::string& failure() const { return print_failure_; }

 private:
  using Json = nlohmann::ordered_json;

  std::string comparison_text() const;
  std::string unit_text(const RunReport& report) const;
  std::string frozen_text(const RunReport& report) const;
  void compare(const RunReport& report);
  void close_json(const RunReport& report, double last_five);
  Json timeline_json(const Timeline& timeline) const;
  /// The schedule's costs, with what messages take: their price, which they are made to last, and on GPUs what they took.
  Costs with_messages(const RunReport& report) const;
  Timeline predict(const RunReport& report) const;
  void say(const std::string& text);
  void show(const std::string& text);

  const RunArguments& arguments_;
  const Built& built_;
  const TrainedModel& model_;
  const RunOptions& options_;
  const Costs& costs_ns_;
  const std::string clock_;
  const bool is_quiet_;
  Json steps_ = Json::array();
  std::string print_failure_;
};

}  // namespace stave
