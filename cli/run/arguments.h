// What `stave run` is told on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "executor/stage/config.h"

namespace stave {

struct RunArguments {
  ScheduleOptions schedule;
  std::string workload = "transformer";
  /// A shared library whose stages are trained in place of `workload`, and what it is told.
  std::string stage;
  std::string stage_options;
  std::string clock = "auto";
  std::vector<std::string> data;
  ModelConfig model;
  /// How many ranks to start on this host; 0 for none.
  std::uint32_t ranks = 0;
  /// Empty: gloo with --ranks, else inproc; on GPUs nccl with --ranks, else local.
  std::string transport;
  std::string backend = "cpu";
  /// "iter", or empty.
  std::string graph;
  bool serial = false;
  std::string precision = "fp32";
  bool rendezvous = false;
  /// Of a message between sleeps.
  std::uint32_t message_kib = 0;
  /// Copies of the schedule, data-parallel groups.
  std::uint32_t replicas = 1;
  double clip = 0;
  std::string checkpoint;
  std::uint32_t checkpoint_every = 0;
  bool resume = false;
  std::string log;
  /// A file to write: the step shown, as measured.
  std::string timeline;
  double unit_ms = 1;
  double memory_gib = 4;
  std::uint32_t every = 0;
  bool unchecked = false;
  bool verify = false;
  bool json = false;

  bool is_on_gpus() const { return backend == "cuda"; }
  bool has_own_stage() const { return !stage.empty(); }
  /// The transformer.
  bool trains() const { return workload == "transformer" && !has_own_stage(); }
  bool sleeps() const { return workload == "sleep" && !has_own_stage(); }
  /// Numbers with rounding, whose loss is shown.
  bool has_loss() const { return trains() || has_own_stage(); }
};

/// The part of them that says how large the transformer is, and what text it is trained on.
void add_model_arguments(CLI::App& command, RunArguments& arguments);
void add_run_arguments(CLI::App& command, RunArguments& arguments);

}  // namespace stave
