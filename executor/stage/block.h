// One transformer block: layer norm, causal attention, residual, layer norm, MLP with gelu, residual.
// Forward, input gradient and weight gradient are separate; what one leaves for the next lies in the stash. A
// microbatch may be cut into slices of its sequence: attention then reads the keys and values of the slices before, and
// adds to their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/stage/freeze.h"

namespace stave {

/// The sizes of what a block computes at once: a slice of a microbatch, or all of it.
struct BlockShape {
  std::size_t rows = 0;
  /// Tokens of a row in this slice.
  std::size_t sequence = 0;
  std::size_t width = 0;
  std::size_t heads = 0;
  /// Tokens of a row in the slices before it.
  std::size_t before = 0;
  /// Whether slices come after it, which will add to the gradients of its keys and values.
  bool has_later = false;

  /// Tokens of a row that it attends to.
  std::size_t context() const { return before + sequence; }
  std::size_t tokens() const { return rows * sequence; }
  std::size_t head_width() const { return width / heads; }
};

/// A parameter tensor: where it lies in the arena of its stage. Shape: inputs x outputs, row-major; a vector has one
/// row.
struct Tensor {
  std::size_t offset = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t count() const { return rows * columns; }
};

/// The tensors of a block. Products are y = x W + bias.
struct BlockParameters {
  struct Linear {
    Tensor weight;
    Tensor bias;
  };
  struct Norm {
    Tensor gain;
    Tensor bias;
  };
  Norm norm1;
  Linear attention;
  Linear projection;
  Norm norm2;
  Linear widen;
  Linear narrow;
};

/// A slice before the one computed, with the block's stash of it.
struct EarlierSlice {
  BlockShape shape;
  float* stash = nullptr;
};

/// Floats of one block's stash, for one slice.
std::size_t block_stash_floats(const BlockShape& shape);
/// Floats of the scratch that one thread needs for any block.
std::size_t block_scratch_floats(const BlockShape& shape);

/// x[tokens][width] becomes the output of the block. `values` is the arena of the stage's parameters; `earlier` are the
/// slices before, by rising number. `again`: the stash held it before, and later slices may have added to it since.
void block_forward(const BlockShape& shape, const BlockParameters& p, const float* values,
                   std::span<const EarlierSlice> earlier, bool again, float* x, float* stash);

/// Drops all that a forward left but what other slices read: it is written over, so that nobody can use it unnoticed.
void block_forget(const BlockShape& shape, float* stash);

/// g[tokens][width], the gradient of the block's output, becomes that of its input. Also sums the gradients of biases
/// and norms of this slice into the stash, unless frozen: they read the same tensors.
void block_input_gradient(const BlockShape& shape, const BlockParameters& p, const float* values,
                          std::span<const EarlierSlice> earlier, std::uint8_t frozen, float* g, float* stash,
                          float* scratch);

/// Adds the slice's gradients of all parameters that are not frozen to the arena `gradients`.
void block_weight_gradient(const BlockShape& shape, const BlockParameters& p, std::uint8_t frozen, float* gradients,
                           const float* stash);

}  // namespace stave
