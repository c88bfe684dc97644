// The integer workload: stages of linear arithmetic on whole numbers modulo 2^64, to test schedules and executors with.
// Sums do not depend on their order, so every legal schedule gives the same result to the last bit, and a buffer that
// is stale, lost, doubled or swapped gives another one.
#pragma once

#include <memory>
#include <vector>

#include "executor/stage/freeze.h"
#include "executor/stage/stage.h"

namespace stave {

class IntegerStage;

/// Words of a stage, where nothing else is asked for.
inline constexpr std::uint32_t kIntegerWords = 48;

class IntegerWorkload : public Workload {
 public:
  /// Shape: activations, gradients and parameters of a stage have `words` elements (1 to 2^20).
  explicit IntegerWorkload(std::uint32_t words = 48, std::uint64_t seed = 1, FreezeRatios freeze = {});

  ~IntegerWorkload() override;

  Result<void> configure(const Partition& partition) override;
  void create() override;
  Stage* stage(StageId s, std::uint32_t replica = 0) override;
  std::size_t payload_bytes(std::string_view payload, std::uint32_t microbatch, std::uint32_t slice) const override;
  std::size_t payload_bytes(std::string_view payload) const override;
  std::size_t stash_bytes(StageId s) const override;
  std::uint64_t parameter_bytes() const override;
  double loss() const override;

 private:
  std::uint32_t words_;
  std::uint64_t seed_;
  FreezeRatios freeze_;
  Partition partition_;
  // By stage and replica.
  std::vector<std::vector<std::unique_ptr<IntegerStage>>> made_;
};

}  // namespace stave
