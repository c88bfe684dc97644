// What `stave-run` is told on the command line: the part of `stave run` that needs no schedule.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "executor/gpu.h"
#include "executor/stage/config.h"

namespace stave {

struct AloneArguments {
  std::string program;
  std::vector<std::string> data;
  bool trains = true;
  bool verify = false;
  bool is_on_gpus = false;
  GpuOptions gpu;
  ModelConfig model;
};

extern const char* const kAloneUsage;

/// Errors: an unknown option, a value that it cannot have, no program or several.
Result<AloneArguments> read_alone_arguments(int argc, char** argv);

}  // namespace stave
