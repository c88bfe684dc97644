// The seam between the executor and what it trains: a Workload makes the stages of a model, a Stage computes.
// When an op runs and where its data lies is the executor's; what it computes is the stage's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace stave {

enum class Element : std::uint8_t { Float32, Whole64 };

/// A named parameter tensor with the gradient of the last step. Shape: `count` elements each.
struct ParameterView {
  std::string name;
  Element element = Element::Float32;
  const void* value = nullptr;
  const void* gradient = nullptr;
  std::size_t count = 0;
};

/// One stage of a model. All calls come from the thread of its device; buffers are 64-byte aligned.
/// Contract: forward, then input_gradient, then weight_gradient of a microbatch get the same `stash`, which nobody else
/// touches in between; several microbatches may be under way at once. May throw; the executor reports the op.
class Stage {
 public:
  virtual ~Stage() = default;

  /// Before the first op of a step (counted from 0): all gradients become zero.
  virtual void begin_step(std::uint64_t step) = 0;
  /// `input` is null on the first stage, `output` where nobody reads it. They may be one buffer.
  virtual void forward(std::uint32_t microbatch, const std::byte* input, std::byte* output, std::byte* stash) = 0;
  /// `gradient` of this stage's output (null on the last stage) becomes that of its input.
  virtual void input_gradient(std::uint32_t microbatch, const std::byte* gradient, std::byte* output,
                              std::byte* stash) = 0;
  /// Adds the microbatch's weight gradients to those of the step.
  virtual void weight_gradient(std::uint32_t microbatch, std::byte* stash) = 0;
  /// After the last op of a step; the gradients stay readable until the next step begins.
  virtual void optimizer_step() = 0;

  /// Mean loss over the microbatches of the step; 0 on any stage but the last.
  virtual double loss() const { return 0; }
  virtual std::vector<ParameterView> parameters() const { return {}; }
};

/// A model, cut into the stages of a schedule.
class Workload {
 public:
  virtual ~Workload() = default;

  /// Fits the model to a schedule and computes all sizes; allocates nothing. Errors: a size outside its bounds.
  virtual Result<void> configure(std::uint32_t stages, std::uint32_t microbatches) = 0;
  /// Makes the stages; a second call with the same shape keeps them. Throws std::bad_alloc.
  virtual void create() = 0;

  /// Null if nothing is computed (the sleep workload): then every op lasts its cost.
  virtual Stage* stage(StageId s) = 0;
  /// Size of what a message of this name carries; 0 if the model knows no such data.
  virtual std::size_t payload_bytes(std::string_view payload) const = 0;
  virtual std::size_t stash_bytes(StageId s) const = 0;
  /// Parameters with gradients, optimizer state and scratch, of all stages.
  virtual std::uint64_t parameter_bytes() const = 0;
  /// Tokens that one step trains on; 0 if it has none.
  virtual std::uint64_t tokens_per_step() const { return 0; }
  virtual bool computes() const { return true; }
};

}  // namespace stave
