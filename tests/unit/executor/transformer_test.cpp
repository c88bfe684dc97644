#include "executor/stage/transformer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "executor/aligned.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/stage/freeze.h"

namespace stave {
namespace {

std::shared_ptr<const Corpus> text() {
  std::vector<std::uint8_t> bytes;
  RandomStream random(5);
  for (int i = 0; i < 4000; ++i) bytes.push_back(static_cast<std::uint8_t>('a' + random.below(26)));
  return std::make_shared<Corpus>(bytes);
}

ModelConfig tiny() {
  ModelConfig config;
  config.width = 8;
  config.heads = 2;
  config.sequence = 6;
  config.rows = 2;
  config.steps = 4;
  return config;
}

// Weights large enough that every part of the model matters to the loss.
void randomize(Workload& model, std::uint32_t stages) {
  std::uint64_t seed = 11;
  for (std::uint32_t s = 0; s < stages; ++s) {
    for (const ParameterView& p : model.stage(StageId(s))->parameters()) {
      RandomStream random(seed++);
      float* values = const_cast<float*>(static_cast<const float*>(p.value));
      for (std::size_t i = 0; i < p.count; ++i) values[i] += static_cast<float>(random.uniform() - 0.5);
    }
  }
}

// Mean loss of step 0, and its gradients left in the stages; microbatch after microbatch, without an optimizer step.
double pass(Workload& model, std::uint32_t stages, std::uint32_t microbatches, bool backward) {
  std::vector<AlignedBytes> stashes;
  for (std::uint32_t s = 0; s < stages; ++s) stashes.emplace_back(model.stash_bytes(StageId(s)));
  const AlignedBytes value(model.payload_bytes("activation"));
  for (std::uint32_t s = 0; s < stages; ++s) model.stage(StageId(s))->begin_step(0);
  for (std::uint32_t m = 0; m < microbatches; ++m) {
    for (std::uint32_t s = 0; s < stages; ++s)
      model.stage(StageId(s))->forward(m, value.data(), value.data(), stashes[s].data());
    for (std::uint32_t s = stages; backward && s-- > 0;) {
      model.stage(StageId(s))->input_gradient(m, value.data(), value.data(), stashes[s].data());
      model.stage(StageId(s))->weight_gradient(m, stashes[s].data());
    }
  }
  return model.stage(StageId(stages - 1))->loss();
}

TEST_CASE("every gradient equals the slope of the loss") {
  for (std::uint32_t stages : {1u, 3u}) {
    ModelConfig config = tiny();
    config.blocks = 3;
    Transformer model(config, text());
    REQUIRE(model.configure(stages, 2));
    model.create();
    randomize(model, stages);
    pass(model, stages, 2, true);
    std::vector<std::vector<float>> gradients;
    for (std::uint32_t s = 0; s < stages; ++s) {
      for (const ParameterView& p : model.stage(StageId(s))->parameters()) {
        const float* kept = static_cast<const float*>(p.gradient);
        gradients.emplace_back(kept, kept + p.count);
      }
    }
    std::uint64_t seed = 99;
    std::size_t tensor = 0;
    for (std::uint32_t s = 0; s < stages; ++s) {
      for (const ParameterView& p : model.stage(StageId(s))->parameters()) {
        CAPTURE(p.name);
        float* values = const_cast<float*>(static_cast<const float*>(p.value));
        const std::vector<float>& gradient = gradients[tensor++];
        const std::vector<float> before(values, values + p.count);
        double norm = 0;
        for (float g : gradient) norm += static_cast<double>(g) * static_cast<double>(g);
        norm = std::sqrt(norm);
        // The key's share of the attention bias adds the same to a whole row of scores, so that parts may be 0; no
        // tensor is.
        REQUIRE(norm > 1e-6);
        RandomStream random(seed++);
        for (int direction = 0; direction < 3; ++direction) {
          std::vector<double> v(p.count);
          double expected = 0;
          for (std::size_t i = 0; i < p.count; ++i) {
            const double g = static_cast<double>(gradient[i]) / norm;
            const double sign = random.below(2) == 0 ? 1 : -1;
            v[i] = direction == 0 ? g : g + sign / std::sqrt(static_cast<double>(p.count));
            expected += v[i] * static_cast<double>(gradient[i]);
          }
          constexpr double kStep = 4e-3;
          const auto loss_at = [&](double h) {
            for (std::size_t i = 0; i < p.count; ++i)
              values[i] = static_cast<float>(static_cast<double>(before[i]) + h * v[i]);
            return pass(model, stages, 2, false);
          };
          const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
          std::copy(before.begin(), before.end(), values);
          CHECK(slope == doctest::Approx(expected).epsilon(0.01).scale(norm));
        }
      }
    }
  }
}

TEST_CASE("the cut into stages changes nothing, to the last bit") {
  ModelConfig config = tiny();
  config.blocks = 5;
  double losses[3];
  std::vector<std::vector<float>> gradients[3];
  const std::uint32_t cuts[] = {1, 2, 5};
  for (int i = 0; i < 3; ++i) {
    Transformer model(config, text());
    REQUIRE(model.configure(cuts[i], 3));
    model.create();
    losses[i] = pass(model, cuts[i], 3, true);
    for (std::uint32_t s = 0; s < cuts[i]; ++s)
      for (const ParameterView& p : model.stage(StageId(s))->parameters())
        gradients[i].emplace_back(static_cast<const float*>(p.gradient),
                                  static_cast<const float*>(p.gradient) + p.count);
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0] == losses[2]);
  CHECK(gradients[0] == gradients[1]);
  CHECK(gradients[0] == gradients[2]);
  CHECK(losses[0] == doctest::Approx(std::log(256)).epsilon(0.01));
}

TEST_CASE("microbatches may be under way at once, and the order of I does not matter") {
  const ModelConfig config = tiny();
  Transformer one(config, text());
  Transformer other(config, text());
  for (Transformer* model : {&one, &other}) {
    REQUIRE(model->configure(1, 2));
    model->create();
  }
  pass(one, 1, 2, true);
  const AlignedBytes stashes[] = {AlignedBytes(other.stash_bytes(StageId(0))),
                                  AlignedBytes(other.stash_bytes(StageId(0)))};
  Stage& stage = *other.stage(StageId(0));
  stage.begin_step(0);
  for (std::uint32_t m : {0u, 1u}) stage.forward(m, nullptr, nullptr, stashes[m].data());
  for (std::uint32_t m : {1u, 0u}) stage.input_gradient(m, nullptr, nullptr, stashes[m].data());
  for (std::uint32_t m : {0u, 1u}) stage.weight_gradient(m, stashes[m].data());
  const std::vector<ParameterView> a = one.stage(StageId(0))->parameters();
  const std::vector<ParameterView> b = stage.parameters();
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK(std::memcmp(a[i].gradient, b[i].gradient, a[i].count * sizeof(float)) == 0);
}

TEST_CASE("frozen groups get no gradient, the others the same one") {
  const ModelConfig config = tiny();
  const auto gradients = [&](double ratio) {
    Transformer model(config, text(), FreezeRatios{{ratio}});
    REQUIRE(model.configure(1, 1));
    model.create();
    pass(model, 1, 1, true);
    std::vector<std::pair<std::string, std::vector<float>>> result;
    for (const ParameterView& p : model.stage(StageId(0))->parameters()) {
      const float* g = static_cast<const float*>(p.gradient);
      result.emplace_back(p.name, std::vector<float>(g, g + p.count));
    }
    return result;
  };
  const auto all = gradients(0);
  const auto third = gradients(1.0 / 3);
  const auto none = gradients(1);
  std::size_t frozen = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].first);
    const std::vector<float> zero(all[i].second.size(), 0.0f);
    CHECK(all[i].second != zero);
    CHECK(none[i].second == zero);
    if (third[i].second == zero) {
      ++frozen;
    } else {
      CHECK(third[i].second == all[i].second);
    }
  }
  // Attention and projection, with their biases and the first norm: 4 of 12 parts.
  CHECK(frozen == 6);
}

TEST_CASE("freeze ratios are rounded to groups of 3, 1, 4 and 4 twelfths") {
  CHECK(freeze_groups(0, 1).ratio == 0);
  CHECK(freeze_groups(0.25, 1).ratio == doctest::Approx(3.0 / 12));
  CHECK(freeze_groups(0.5, 1).ratio == doctest::Approx(5.0 / 12));
  CHECK(freeze_groups(0.5, 2).ratio == doctest::Approx(0.5));
  CHECK(freeze_groups(0.6, 2).ratio == doctest::Approx(15.0 / 24));
  CHECK(freeze_groups(0.8, 1).ratio == doctest::Approx(9.0 / 12));
  CHECK(freeze_groups(1, 3).all);
  CHECK(!freeze_groups(0.99, 3).all);
  CHECK(freeze_groups(0.5, 0).ratio == 0);
  CHECK(!FreezeRatios{{0.5}}.fits(2, 1));
  CHECK(!FreezeRatios{{0.5, 1.5}}.fits(2, 1));
  CHECK(FreezeRatios{{0.5, 1}}.fits(2, 1));
}

TEST_CASE("a model that does not fit the schedule is refused") {
  ModelConfig config = tiny();
  config.blocks = 3;
  CHECK(Transformer(config, text()).configure(4, 1).failure().message ==
        "blocks is 3, but the schedule has 4 stages, and each needs one");
  config = tiny();
  config.sequence = 4096;
  CHECK(!Transformer(config, text()).configure(1, 1));
  CHECK(!Transformer(tiny(), nullptr).configure(1, 1));
  CHECK(!Transformer(tiny(), text(), FreezeRatios{{1, 1}}).configure(1, 1));
}

TEST_CASE("training lowers the loss") {
  ModelConfig config = tiny();
  config.steps = 60;
  config.learning_rate = 0.02;
  Transformer model(config, text());
  const Result<double> first = run_reference(model, 2, 4, 1);
  REQUIRE(first);
  Transformer again(config, text());
  const Result<double> last = run_reference(again, 2, 4, 60);
  REQUIRE(last);
  CHECK(first.value() == doctest::Approx(std::log(256)).epsilon(0.01));
  CHECK(last.value() < 3.5);
}

}  // namespace
}  // namespace stave
