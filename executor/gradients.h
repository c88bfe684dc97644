// Arithmetic on all gradients of a stage at once: sums over its replicas, and their norm.
#pragma once

#include <span>
#include <vector>

#include "core/result.h"
#include "executor/stage/stage.h"

namespace stave {

struct Ranks;

/// Adds gradients to those of another replica of their stage.
void add_gradients(const GradientView& sum, const GradientView& each);

/// All become their sum, added in the order given.
void sum_gradients(std::span<const GradientView> all);

/// The sum of the squares, of fp32 gradients, added in double precision in one order on every machine.
double sum_of_squares(const GradientView& gradients);

/// The norm of all gradients of a run, whose squares are summed by stage, 0 of those on other ranks. Added by stage, in
/// every run alike. Errors: a rank that failed or is gone.
Result<double> norm_of(std::vector<double> squares, const Ranks* ranks);

/// Multiplies fp32 gradients.
void scale_gradients(const GradientView& gradients, float factor);

}  // namespace stave
