// Arithmetic on all gradients of a stage at once: sums over its replicas, and their norm.
#pragma once

#include "executor/stage/stage.h"

namespace stave {

/// Adds gradients to those of another replica of their stage.
void add_gradients(const GradientView& sum, const GradientView& each);

/// The sum of the squares, of fp32 gradients, added in double precision in one order on every machine.
double sum_of_squares(const GradientView& gradients);

/// Multiplies fp32 gradients.
void scale_gradients(const GradientView& gradients, float factor);

}  // namespace stave
