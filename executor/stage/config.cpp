#include "executor/stage/config.h"

#include <algorithm>
#include <string>

namespace stave {

namespace {

Result<void> within(const Bounds& bounds, std::uint32_t value) {
  if (value >= bounds.least && value <= bounds.most) return {};
  return Failure{std::string(bounds.name) + " is " + std::to_string(value) + ", but must lie between " +
                 std::to_string(bounds.least) + " and " + std::to_string(bounds.most)};
}

}  // namespace

Result<void> validate(const ModelConfig& config) {
  const std::pair<Bounds, std::uint32_t> all[] = {
      {kWidthBounds, config.width},       {kHeadsBounds, config.heads}, {kBlocksBounds, config.blocks},
      {kSequenceBounds, config.sequence}, {kRowsBounds, config.rows},   {kStepsBounds, config.steps},
  };
  for (const auto& [bounds, value] : all)
    if (Result<void> result = within(bounds, value); !result) return result;
  if (config.width % config.heads != 0)
    return Failure{"width is " + std::to_string(config.width) + ", which " + std::to_string(config.heads) +
                   " heads do not divide"};
  if (!(config.learning_rate > 0 && config.learning_rate <= kMostLearningRate))
    return Failure{"the learning rate is " + std::to_string(config.learning_rate) +
                   ", but must be above 0 and at most " + std::to_string(static_cast<int>(kMostLearningRate))};
  if (config.decay > 0 && config.warmup >= config.decay)
    return Failure{"the learning rate rises until step " + std::to_string(config.warmup) +
                   " (warmup), but has fallen by step " + std::to_string(config.decay) + " (decay)"};
  return {};
}

double learning_rate_at(const ModelConfig& config, std::uint64_t step) {
  const double steps = config.decay > 0 ? config.decay : config.steps;
  const double warmup = config.warmup > 0 ? config.warmup : std::max(1.0, steps / 10);
  const double done = static_cast<double>(step) + 1;
  if (done <= warmup) return config.learning_rate * done / warmup;
  const double rest = std::min(1.0, (done - warmup) / std::max(1.0, steps - warmup));
  return config.learning_rate * (1 - 0.9 * rest);
}

}  // namespace stave
