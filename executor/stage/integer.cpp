#include "executor/stage/integer.h"

#include <cmath>

#include "executor/random.h"

namespace stave {

namespace {

constexpr std::uint32_t kMaxWords = 1u << 20;

std::uint64_t* words_of(std::byte* bytes) { return reinterpret_cast<std::uint64_t*>(bytes); }
const std::uint64_t* words_of(const std::byte* bytes) { return reinterpret_cast<const std::uint64_t*>(bytes); }

// y[i] = w[i] x[i] + x[i + 1]. The loss is the sum of y[i]^2 + r[m][i] y[i] on the last stage.
class IntegerStage : public Stage {
 public:
  IntegerStage(std::uint32_t stage, bool is_first, bool is_last, std::uint32_t words, std::uint64_t seed,
               std::vector<std::uint32_t> frozen)
      : stage_(stage), is_first_(is_first), is_last_(is_last), words_(words), seed_(seed), frozen_(std::move(frozen)) {
    weight_.resize(words);
    for (std::uint32_t i = 0; i < words; ++i) weight_[i] = mix(mix(seed, stage), i) | 1;
    gradient_.assign(words, 0);
  }

  void begin_step(std::uint64_t step) override {
    step_ = step;
    gradient_.assign(words_, 0);
    loss_ = 0;
  }

  void forward(std::uint32_t microbatch, const std::byte* input, std::byte* output, std::byte* stash) override {
    std::uint64_t* x = words_of(stash);
    std::uint64_t* y = x + words_;
    for (std::uint32_t i = 0; i < words_; ++i) x[i] = is_first_ ? number(microbatch, i) : words_of(input)[i];
    for (std::uint32_t i = 0; i < words_; ++i) y[i] = weight_[i] * x[i] + x[(i + 1) % words_];
    if (is_last_)
      for (std::uint32_t i = 0; i < words_; ++i) loss_ += y[i] * y[i] + number(microbatch, i) * y[i];
    if (output != nullptr)
      for (std::uint32_t i = 0; i < words_; ++i) words_of(output)[i] = y[i];
  }

  void input_gradient(std::uint32_t microbatch, const std::byte* gradient, std::byte* output,
                      std::byte* stash) override {
    std::uint64_t* y = words_of(stash) + words_;
    // The gradient of y takes its place for weight_gradient.
    for (std::uint32_t i = 0; i < words_; ++i)
      y[i] = is_last_ ? 2 * y[i] + number(microbatch, i) : words_of(gradient)[i];
    if (output == nullptr) return;
    for (std::uint32_t i = 0; i < words_; ++i) words_of(output)[i] = weight_[i] * y[i] + y[(i + words_ - 1) % words_];
  }

  void weight_gradient(std::uint32_t microbatch, std::byte* stash) override {
    const std::uint64_t* x = words_of(stash);
    const std::uint64_t* dy = x + words_;
    for (std::uint32_t i = frozen_[microbatch]; i < words_; ++i) gradient_[i] += dy[i] * x[i];
  }

  void optimizer_step() override {
    // An even change keeps every weight odd, so that no step loses bits.
    for (std::uint32_t i = 0; i < words_; ++i) weight_[i] -= 2 * gradient_[i];
  }

  // What a double holds of it: enough to see that two runs differ.
  double loss() const override { return is_last_ ? static_cast<double>(loss_ >> 11) : 0; }

  std::vector<ParameterView> parameters() const override {
    return {{"stage" + std::to_string(stage_) + ".weight", Element::Whole64, weight_.data(), gradient_.data(), words_}};
  }

 private:
  std::uint64_t number(std::uint32_t microbatch, std::uint32_t i) const {
    return mix(mix(mix(seed_, step_), microbatch), (std::uint64_t{stage_} << 32) | i);
  }

  std::uint32_t stage_;
  bool is_first_;
  bool is_last_;
  std::uint32_t words_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> frozen_;
  std::vector<std::uint64_t> weight_;
  std::vector<std::uint64_t> gradient_;
  std::uint64_t loss_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace

IntegerWorkload::IntegerWorkload(std::uint32_t words, std::uint64_t seed, FreezeRatios freeze)
    : words_(words), seed_(seed), freeze_(std::move(freeze)) {}

Result<void> IntegerWorkload::configure(std::uint32_t stages, std::uint32_t microbatches) {
  if (words_ < 1 || words_ > kMaxWords)
    return Failure{"the integer workload has 1 to " + std::to_string(kMaxWords) + " words a stage, not " +
                   std::to_string(words_)};
  if (!freeze_.fits(stages, microbatches)) return Failure{"the freeze ratios do not fit the schedule"};
  if (stages != stages_ || microbatches != microbatches_) made_.clear();
  stages_ = stages;
  microbatches_ = microbatches;
  return {};
}

void IntegerWorkload::create() {
  if (!made_.empty()) return;
  for (std::uint32_t s = 0; s < stages_; ++s) {
    std::vector<std::uint32_t> frozen;
    for (std::uint32_t m = 0; m < microbatches_; ++m)
      frozen.push_back(static_cast<std::uint32_t>(std::lround(freeze_.at(s, m, microbatches_) * words_)));
    made_.push_back(std::make_unique<IntegerStage>(s, s == 0, s + 1 == stages_, words_, seed_, std::move(frozen)));
  }
}

Stage* IntegerWorkload::stage(StageId s) { return made_[s.value].get(); }

std::size_t IntegerWorkload::payload_bytes(std::string_view payload) const {
  return payload == "activation" || payload == "gradient" ? words_ * sizeof(std::uint64_t) : 0;
}

std::size_t IntegerWorkload::stash_bytes(StageId) const { return 2 * words_ * sizeof(std::uint64_t); }

std::uint64_t IntegerWorkload::parameter_bytes() const {
  return std::uint64_t{2} * words_ * sizeof(std::uint64_t) * stages_;
}

}  // namespace stave
