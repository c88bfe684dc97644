// The seam between the executor and what it trains: a Workload makes the stages of a model, a Stage computes.
// When an op runs and where its data lies is the executor's; what it computes is the stage's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "executor/partition.h"

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

/// All gradients of a stage at once, in an order that its replicas share.
struct GradientView {
  Element element = Element::Float32;
  void* data = nullptr;
  std::size_t count = 0;
};

inline std::size_t bytes_of(const GradientView& view) {
  return view.count * (view.element == Element::Float32 ? sizeof(float) : sizeof(std::uint64_t));
}

/// What a call is about: a slice of a microbatch at this stage of its route, and what is kept of it there.
struct Part {
  std::uint32_t microbatch = 0;
  std::uint32_t slice = 0;
  /// The route begins here: the input is the batch itself.
  bool begins = false;
  /// The route ends here: the output goes into the loss.
  bool ends = false;
  /// Forward keeps the input alone, and what slices after it read; recompute() makes the rest again.
  bool recomputed = false;
  /// Which of the versions that the stage keeps it reads.
  std::uint32_t weights = 0;
  /// The stash of every slice of the microbatch at this stage; the part's own is stashes[slice]. Of the others only
  /// those of slices before it are touched: by forward and recompute to read, by input_gradient also to add to.
  std::span<std::byte* const> stashes;

  std::byte* stash() const { return stashes[slice]; }
};

/// One stage of a model, or one of its replicas. All calls come from the thread of its device, but for a reduction,
/// which touches its gradients while that thread waits; buffers are 64-byte aligned. Contract: the slices of a
/// microbatch are forwarded by rising and their input gradients taken by falling number; forward, perhaps recompute,
/// input_gradient and weight_gradient of a part get the same stashes and version of the weights. Nobody else touches
/// the stashes in between; several microbatches may be under way at once. May throw; the executor reports the op.
class Stage {
 public:
  virtual ~Stage() = default;

  /// Before the first op of a step (counted from 0): all gradients become zero.
  virtual void begin_step(std::uint64_t step) = 0;
  /// `input` is null where the route begins, `output` where nobody reads it. They may be one buffer.
  virtual void forward(const Part& part, const std::byte* input, std::byte* output) = 0;
  /// Of a recomputed part: makes again, from the input kept, what forward has dropped. After forward, before
  /// input_gradient.
  virtual void recompute(const Part& part) = 0;
  /// `gradient` of this stage's output (null where the route ends) becomes that of its input.
  virtual void input_gradient(const Part& part, const std::byte* gradient, std::byte* output) = 0;
  /// Adds the part's weight gradients to those of the step.
  virtual void weight_gradient(const Part& part) = 0;
  /// Both at once, with the same results.
  virtual void backward(const Part& part, const std::byte* gradient, std::byte* output) {
    input_gradient(part, gradient, output);
    weight_gradient(part);
  }
  /// Makes version `to` of the weights from version `from`, which may be the same, by the gradients added since the
  /// last update, or since the step began. These stay readable until the next is added or the next step begins.
  /// Versions are numbered from 0, below Partition::kept of the stage.
  virtual void optimizer_step(std::uint32_t from, std::uint32_t to) = 0;
  /// At the end of a step: version `newest` becomes version 0, the one that parameters() shows.
  virtual void settle(std::uint32_t newest) = 0;
  /// The weights of a version as they travel.
  virtual std::span<std::byte> weights(std::uint32_t version) = 0;
  /// The gradients that the next update will use.
  virtual GradientView gradients() = 0;
  /// Those of them that belong to a parameter of several stages (Workload::tied); none if there is none.
  virtual GradientView tied_gradients() { return {}; }

  virtual std::vector<ParameterView> parameters() const { return {}; }
  /// What a later run needs to go on as this one would, between two steps: weights, moments, counters.
  virtual std::vector<std::span<std::byte>> state() { return {}; }
};

/// A model, cut into the stages of a schedule.
class Workload {
 public:
  virtual ~Workload() = default;

  /// Fits the model to a schedule and computes all sizes; makes no stage. Errors: a size outside its bounds, or that
  /// the partition does not fit.
  virtual Result<void> configure(const Partition& partition) = 0;
  /// Makes the stages of the devices that are here, those of one partition once. Throws std::bad_alloc.
  virtual void create() = 0;

  /// The stage's replica on Partition::devices[s][replica]; null if there is none, or none here. Where nothing is
  /// computed (the sleep workload) there never is, and every op lasts its cost.
  virtual Stage* stage(StageId s, std::uint32_t replica = 0) = 0;
  /// Groups of stages, by rising number, that each hold a copy of one parameter: before the update that ends a step the
  /// tied gradients of a group are added in this order, and all get the sum. Valid after configure().
  virtual std::vector<std::vector<StageId>> tied() const { return {}; }
  /// Size of what a message of this name carries for a slice of a microbatch; 0 if the model knows no such data.
  virtual std::size_t payload_bytes(std::string_view payload, std::uint32_t microbatch, std::uint32_t slice) const = 0;
  /// The greatest of them.
  virtual std::size_t payload_bytes(std::string_view payload) const = 0;
  /// Size of the largest stash of a stage.
  virtual std::size_t stash_bytes(StageId s) const = 0;
  /// Parameters with gradients, optimizer state and scratch, of all stages and replicas that are here.
  virtual std::uint64_t parameter_bytes() const = 0;
  /// Tokens that one step trains on; 0 if it has none.
  virtual std::uint64_t tokens_per_step() const { return 0; }
  /// Loss of the step, once it has ended: the mean over its tokens of what ends here, which over all processes adds up
  /// to the whole; 0 if it has none.
  virtual double loss() const { return 0; }
  virtual bool computes() const { return true; }

  /// Whether what the stages show of themselves (weights, gradients, state) lies where the host reaches it. Else copy()
  /// brings it, and takes it back, between two steps; it returns when that is done. Throws std::runtime_error.
  virtual bool is_on_host() const { return true; }
  virtual void copy(void* to, const void* from, std::size_t bytes) const {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace stave
