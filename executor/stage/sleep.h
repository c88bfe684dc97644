// The sleep workload: nothing is computed and every op lasts its cost, so that a wall clock can be held against a
// prediction on any number of cores.
#pragma once

#include "executor/stage/stage.h"

namespace stave {

class SleepWorkload : public Workload {
 public:
  Result<void> configure(const Partition&) override { return {}; }
  void create() override {}
  Stage* stage(StageId, std::uint32_t) override { return nullptr; }
  std::size_t payload_bytes(std::string_view, std::uint32_t, std::uint32_t) const override { return 0; }
  std::size_t payload_bytes(std::string_view) const override { return 0; }
  std::size_t stash_bytes(StageId) const override { return 0; }
  std::uint64_t parameter_bytes() const override { return 0; }
  bool computes() const override { return false; }
};

}  // namespace stave
