#include "executor/stage/integer.h"

#include <algorithm>
#include <cmath>

#include "executor/random.h"

namespace stave {

namespace {

constexpr std::uint32_t kMaxWords = 1u << 20;

std::uint64_t* words_of(std::byte* bytes) { return reinterpret_cast<std::uint64_t*>(bytes); }
const std::uint64_t* words_of(const std::byte* bytes) { return reinterpret_cast<const std::uint64_t*>(bytes); }

}  // namespace

// y[i] = w[i] x[i] + x[i + 1] + the sum over earlier slices e of c(e) x_e[i + 2]: as in attention, a slice reads what
// those before it have kept, and adds to their gradients. The loss is the sum of y[i]^2 + r[i] y[i] where routes end.
class IntegerStage : public Stage {
 public:
  IntegerStage(std::uint32_t stage, std::uint32_t words, std::uint64_t seed, std::uint32_t versions,
               std::vector<std::uint32_t> frozen)
      : stage_(stage), words_(words), seed_(seed), frozen_(std::move(frozen)) {
    weight_.resize(versions, std::vector<std::uint64_t>(words, 0));
    for (std::uint32_t i = 0; i < words; ++i) weight_[0][i] = mix(mix(seed, stage), i) | 1;
    gradient_.assign(words, 0);
  }

  void begin_step(std::uint64_t step) override {
    step_ = step;
    gradient_.assign(words_, 0);
    used_ = false;
    loss_ = 0;
  }

  void forward(const Part& part, const std::byte* input, std::byte* output) override {
    const Kept kept(*this, part.stash());
    for (std::uint32_t i = 0; i < words_; ++i) {
      kept.x[i] = part.begins ? number(part, i) : words_of(input)[i];
      kept.later[i] = 0;
    }
    make_output(part);
    if (part.ends)
      for (std::uint32_t i = 0; i < words_; ++i) loss_ += kept.y[i] * kept.y[i] + number(part, i) * kept.y[i];
    if (output != nullptr) std::copy_n(kept.y, words_, words_of(output));
    if (part.recomputed) std::fill_n(kept.y, words_, ~std::uint64_t{0});
  }

  void recompute(const Part& part) override { make_output(part); }

  void input_gradient(const Part& part, const std::byte* gradient, std::byte* output) override {
    const Kept kept(*this, part.stash());
    // The gradient of y takes its place for weight_gradient.
    for (std::uint32_t i = 0; i < words_; ++i)
      kept.y[i] = part.ends ? 2 * kept.y[i] + number(part, i) : words_of(gradient)[i];
    for (std::uint32_t e = 0; e < part.slice; ++e) {
      std::uint64_t* later = Kept(*this, part.stashes[e]).later;
      for (std::uint32_t i = 0; i < words_; ++i) later[(i + 2) % words_] += factor(e) * kept.y[i];
    }
    if (output == nullptr) return;
    const std::vector<std::uint64_t>& weight = weight_[part.weights];
    for (std::uint32_t i = 0; i < words_; ++i)
      words_of(output)[i] = weight[i] * kept.y[i] + kept.y[(i + words_ - 1) % words_] + kept.later[i];
  }

  void weight_gradient(const Part& part) override {
    begin_update();
    const Kept kept(*this, part.stash());
    for (std::uint32_t i = frozen_[part.microbatch]; i < words_; ++i) gradient_[i] += kept.y[i] * kept.x[i];
  }

  void optimizer_step(std::uint32_t from, std::uint32_t to) override {
    begin_update();
    // An even change keeps every weight odd, so that no step loses bits.
    for (std::uint32_t i = 0; i < words_; ++i) weight_[to][i] = weight_[from][i] - 2 * gradient_[i];
    used_ = true;
  }

  void settle(std::uint32_t newest) override { std::swap(weight_[0], weight_[newest]); }

  std::vector<std::span<std::byte>> state() override { return {std::as_writable_bytes(std::span(weight_[0]))}; }

  std::span<std::byte> weights(std::uint32_t version) override {
    return std::as_writable_bytes(std::span(weight_[version]));
  }

  GradientView gradients() override {
    begin_update();
    return {Element::Whole64, gradient_.data(), gradient_.size()};
  }

  std::uint64_t loss() const { return loss_; }

  std::vector<ParameterView> parameters() const override {
    const std::string name = "stage" + std::to_string(stage_) + ".weight";
    return {{name, Element::Whole64, weight_[0].data(), gradient_.data(), words_}};
  }

 private:
  // Gradients that an update has used are not used again.
  void begin_update() {
    if (used_) gradient_.assign(words_, 0);
    used_ = false;
  }

  // Where things lie in a stash.
  struct Kept {
    std::uint64_t* x;
    std::uint64_t* y;
    // What later slices have added to the gradient of x.
    std::uint64_t* later;
    Kept(const IntegerStage& stage, std::byte* stash)
        : x(words_of(stash)), y(x + stage.words_), later(y + stage.words_) {}
  };

  static std::uint64_t factor(std::uint32_t slice) { return 2 * std::uint64_t{slice} + 3; }

  void make_output(const Part& part) const {
    const Kept kept(*this, part.stash());
    const std::vector<std::uint64_t>& weight = weight_[part.weights];
    for (std::uint32_t i = 0; i < words_; ++i) kept.y[i] = weight[i] * kept.x[i] + kept.x[(i + 1) % words_];
    for (std::uint32_t e = 0; e < part.slice; ++e) {
      const std::uint64_t* x = Kept(*this, part.stashes[e]).x;
      for (std::uint32_t i = 0; i < words_; ++i) kept.y[i] += factor(e) * x[(i + 2) % words_];
    }
  }

  std::uint64_t number(const Part& part, std::uint32_t i) const {
    const std::uint64_t which = std::uint64_t{part.slice} << 32 | part.microbatch;
    return mix(mix(mix(seed_, step_), which), (std::uint64_t{stage_} << 32) | i);
  }

  std::uint32_t stage_;
  std::uint32_t words_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> frozen_;
  // By version.
  std::vector<std::vector<std::uint64_t>> weight_;
  std::vector<std::uint64_t> gradient_;
  bool used_ = false;
  std::uint64_t loss_ = 0;
  std::uint64_t step_ = 0;
};

IntegerWorkload::IntegerWorkload(std::uint32_t words, std::uint64_t seed, FreezeRatios freeze)
    : words_(words), seed_(seed), freeze_(std::move(freeze)) {}

IntegerWorkload::~IntegerWorkload() = default;

Result<void> IntegerWorkload::configure(const Partition& partition) {
  if (words_ < 1 || words_ > kMaxWords)
    return Failure{"the integer workload has 1 to " + std::to_string(kMaxWords) + " words a stage, not " +
                   std::to_string(words_)};
  if (!freeze_.fits(partition.stages, partition.microbatches))
    return Failure{"the freeze ratios do not fit the schedule"};
  if (!(partition == partition_)) made_.clear();
  partition_ = partition;
  return {};
}

void IntegerWorkload::create() {
  if (!made_.empty()) return;
  made_.resize(partition_.stages);
  for (std::uint32_t s = 0; s < partition_.stages; ++s) {
    std::vector<std::uint32_t> frozen;
    for (std::uint32_t m = 0; m < partition_.microbatches; ++m)
      frozen.push_back(static_cast<std::uint32_t>(std::lround(freeze_.at(s, m, partition_.microbatches) * words_)));
    for (DeviceId d : partition_.devices[StageId(s)])
      made_[s].push_back(partition_.is_here(d) ? std::make_unique<IntegerStage>(s, words_, seed_,
                                                                                partition_.kept_of(StageId(s)), frozen)
                                               : nullptr);
  }
}

Stage* IntegerWorkload::stage(StageId s, std::uint32_t replica) {
  return replica < made_[s.value].size() ? made_[s.value][replica].get() : nullptr;
}

std::size_t IntegerWorkload::payload_bytes(std::string_view payload) const {
  return payload == "activation" || payload == "gradient" || payload == "weights" ? words_ * sizeof(std::uint64_t) : 0;
}

std::size_t IntegerWorkload::payload_bytes(std::string_view payload, std::uint32_t, std::uint32_t) const {
  return payload_bytes(payload);
}

std::size_t IntegerWorkload::stash_bytes(StageId) const { return 3 * words_ * sizeof(std::uint64_t); }

std::uint64_t IntegerWorkload::parameter_bytes() const {
  std::uint64_t arrays = 0;
  for (std::uint32_t s = 0; s < partition_.stages; ++s)
    arrays += partition_.replicas_here(StageId(s)) * (std::uint64_t{1} + partition_.kept_of(StageId(s)));
  return arrays * words_ * sizeof(std::uint64_t);
}

double IntegerWorkload::loss() const {
  std::uint64_t sum = 0;
  for (const auto& replicas : made_)
    for (const std::unique_ptr<IntegerStage>& stage : replicas)
      if (stage != nullptr) sum += stage->loss();
  // What a double holds of it: enough to see that two runs differ.
  return static_cast<double>(sum >> 11);
}

}  // namespace stave
