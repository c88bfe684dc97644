// Makes Programs for tests of the executor by hand, with core/ alone: orders of F, I, W, B, R, G and O, lowered with as
// few slots as liveness allows, so that every wait matters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "executor/stage/stage.h"

namespace stave::test {

struct Step {
  char letter = 'F';
  std::uint32_t stage = 0;
  /// Of G and O, which belong to no microbatch, any number that tells entries of one stage apart.
  std::uint32_t microbatch = 0;
};
/// One list for every device.
using Order = std::vector<std::vector<Step>>;

Table make_table(const Order& order, std::uint32_t stages, std::uint32_t microbatches);

/// The Program of a legal table.
Program lower_by_hand(Table table, std::uint32_t stages, std::uint32_t microbatches);

/// The Program of any table, in table order: a message is received right before its reader, sent right after its maker.
Program lower_unchecked_by_hand(Table table, std::uint32_t stages, std::uint32_t microbatches);

Order gpipe(std::uint32_t devices, std::uint32_t microbatches);
Order one_f_one_b(std::uint32_t devices, std::uint32_t microbatches);
/// 1F1B with a split backward whose W come late; `reversed` takes them by falling microbatch.
Order split_1f1b(std::uint32_t devices, std::uint32_t microbatches, bool reversed);
/// A random legal order on any placement; W and I split or fused at random.
Order random_order(std::uint64_t seed, const std::vector<std::uint32_t>& device_of_stage, std::uint32_t devices,
                   std::uint32_t microbatches);

/// The call for a whole microbatch whose stash is *stash.
inline Part whole(std::uint32_t microbatch, std::byte* const* stash, bool begins, bool ends) {
  Part part;
  part.microbatch = microbatch;
  part.begins = begins;
  part.ends = ends;
  part.stashes = {stash, 1};
  return part;
}

/// A stage that does something of its own before each op.
class Wrapped : public Stage {
 public:
  void begin_step(std::uint64_t step) override { inner->begin_step(step); }
  void forward(const Part& part, const std::byte* x, std::byte* y) override {
    before_op();
    inner->forward(part, x, y);
  }
  void recompute(const Part& part) override { inner->recompute(part); }
  void input_gradient(const Part& part, const std::byte* g, std::byte* dx) override {
    before_op();
    inner->input_gradient(part, g, dx);
  }
  void weight_gradient(const Part& part) override {
    before_op();
    inner->weight_gradient(part);
  }
  void optimizer_step(std::uint32_t from, std::uint32_t to) override { inner->optimizer_step(from, to); }
  void settle(std::uint32_t newest) override { inner->settle(newest); }
  std::span<std::byte> weights(std::uint32_t version) override { return inner->weights(version); }
  GradientView gradients() override { return inner->gradients(); }
  std::vector<ParameterView> parameters() const override { return inner->parameters(); }

  Stage* inner = nullptr;

 protected:
  virtual void before_op() {}
};

Program make(const Order& order, std::uint32_t stages, std::uint32_t microbatches);

}  // namespace stave::test
