#include "executor/gradients.h"

#include <cmath>
#include <cstring>

#include "core/check.h"
#include "executor/cpu/kernels.h"
#include "executor/ranks/ranks.h"

namespace stave {

void add_gradients(const GradientView& sum, const GradientView& each) {
  STAVE_CHECK(each.count == sum.count && each.element == sum.element, "two replicas of a stage differ");
  switch (sum.element) {
    case Element::Float32:
      add(static_cast<float*>(sum.data), static_cast<const float*>(each.data), sum.count);
      break;
    case Element::Whole64:
      for (std::size_t i = 0; i < sum.count; ++i)
        static_cast<std::uint64_t*>(sum.data)[i] += static_cast<const std::uint64_t*>(each.data)[i];
      break;
  }
}

void sum_gradients(std::span<const GradientView> all) {
  if (all.size() < 2 || all.front().count == 0) return;
  const GradientView& sum = all.front();
  for (const GradientView& each : all.subspan(1)) add_gradients(sum, each);
  for (const GradientView& each : all.subspan(1)) std::memcpy(each.data, sum.data, bytes_of(sum));
}

double sum_of_squares(const GradientView& gradients) {
  STAVE_CHECK(gradients.element == Element::Float32, "the norm of whole numbers");
  const float* values = static_cast<const float*>(gradients.data);
  double sum = 0;
  for (std::size_t i = 0; i < gradients.count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

Result<double> norm_of(std::vector<double> squares, const Ranks* ranks) {
  if (ranks != nullptr)
    if (const Result<void> shared = share_sum(*ranks, squares); !shared) return shared.failure();
  double sum = 0;
  for (double square : squares) sum += square;
  return std::sqrt(sum);
}

void scale_gradients(const GradientView& gradients, float factor) {
  STAVE_CHECK(gradients.element == Element::Float32, "whole numbers are not scaled");
  float* values = static_cast<float*>(gradients.data);
  for (std::size_t i = 0; i < gradients.count; ++i) values[i] *= factor;
}

}  // namespace stave
