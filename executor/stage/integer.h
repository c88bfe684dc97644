// The integer workload: stages of linear arithmetic on whole numbers modulo 2^64, to test schedules and executors with.
// Sums do not depend on their order, so every legal schedule gives the same result to the last bit, and a buffer that
// is stale, lost, doubled or swapped gives another one.
#pragma once

#include <memory>

#include "executor/stage/freeze.h"
#include "executor/stage/stage.h"

namespace stave {

class IntegerWorkload : public Workload {
 public:
  /// Shape: activations, gradients and parameters of a stage have `words` elements (1 to 2^20).
  explicit IntegerWorkload(std::uint32_t words = 48, std::uint64_t seed = 1, FreezeRatios freeze = {});

  Result<void> configure(std::uint32_t stages, std::uint32_t microbatches) override;
  void create() override;
  Stage* stage(StageId s) override;
  std::size_t payload_bytes(std::string_view payload) const override;
  std::size_t stash_bytes(StageId s) const override;
  std::uint64_t parameter_bytes() const override;

 private:
  std::uint32_t words_;
  std::uint64_t seed_;
  FreezeRatios freeze_;
  std::uint32_t stages_ = 0;
  std::uint32_t microbatches_ = 0;
  std::vector<std::unique_ptr<Stage>> made_;
};

}  // namespace stave
