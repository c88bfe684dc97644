#include "executor/stage/transformer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "executor/aligned.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/stage/freeze.h"
#include "make_program.h"

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
double pass(Workload& model, const Partition& partition, bool backward) {
  std::vector<AlignedBytes> memory;
  std::vector<std::vector<std::byte*>> stashes(partition.stages);
  for (std::uint32_t s = 0; s < partition.stages; ++s)
    for (std::uint32_t q = 0; q < partition.slices; ++q)
      stashes[s].push_back(memory.emplace_back(model.stash_bytes(StageId(s))).data());
  const AlignedBytes value(model.payload_bytes("activation"));
  for (std::uint32_t s = 0; s < partition.stages; ++s) model.stage(StageId(s))->begin_step(0);
  for (std::uint32_t m = 0; m < partition.microbatches; ++m) {
    const auto part = [&](StageId s, std::uint32_t q) {
      Part result;
      result.microbatch = m;
      result.slice = q;
      result.begins = partition.begins(s, m);
      result.ends = partition.ends(s, m);
      result.recomputed = partition.is_recomputed(s.value, m, q);
      result.stashes = stashes[s.value];
      return result;
    };
    const std::vector<StageId>& route = partition.route(m);
    for (std::uint32_t q = 0; q < partition.slices; ++q)
      for (StageId s : route) model.stage(s)->forward(part(s, q), value.data(), value.data());
    for (std::uint32_t q = partition.slices; backward && q-- > 0;) {
      for (auto s = route.rbegin(); s != route.rend(); ++s) {
        if (partition.is_recomputed(s->value, m, q)) model.stage(*s)->recompute(part(*s, q));
        model.stage(*s)->input_gradient(part(*s, q), value.data(), value.data());
        model.stage(*s)->weight_gradient(part(*s, q));
      }
    }
  }
  return model.loss();
}

double pass(Workload& model, std::uint32_t stages, std::uint32_t microbatches, bool backward) {
  return pass(model, plain_partition(stages, microbatches), backward);
}

TEST_CASE("every gradient equals the slope of the loss") {
  // A tied parameter has its copies on several stages, unless there is one.
  for (const auto& [stages, tied] : {std::pair(1u, false), std::pair(3u, false), std::pair(1u, true)}) {
    CAPTURE(tied);
    ModelConfig config = tiny();
    config.blocks = 3;
    config.tied = tied;
    Transformer model(config, text());
    REQUIRE(model.configure(plain_partition(stages, 2)));
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
    REQUIRE(model.configure(plain_partition(cuts[i], 3)));
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

// Every gradient of a model's stages, tensor after tensor.
std::vector<std::vector<float>> gradients_of(Workload& model, std::uint32_t stages) {
  std::vector<std::vector<float>> result;
  for (std::uint32_t s = 0; s < stages; ++s) {
    for (const ParameterView& p : model.stage(StageId(s))->parameters()) {
      const float* g = static_cast<const float*>(p.gradient);
      result.emplace_back(g, g + p.count);
    }
  }
  return result;
}

// Greatest difference, relative to the largest element of its tensor.
double difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  double worst = 0;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    double most = 0;
    double largest = 0;
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      most = std::max(most, std::abs(static_cast<double>(a[i][j]) - static_cast<double>(b[i][j])));
      largest = std::max(largest, std::abs(static_cast<double>(b[i][j])));
    }
    worst = std::max(worst, most / largest);
  }
  return worst;
}

TEST_CASE("slices, equal or not, leave the loss and the gradients of the whole microbatch") {
  ModelConfig config = tiny();
  config.blocks = 3;
  config.sequence = 11;
  const auto run = [&](const Partition& partition) {
    Transformer model(config, text());
    REQUIRE(model.configure(partition));
    model.create();
    randomize(model, partition.stages);
    const double loss = pass(model, partition, true);
    return std::pair(loss, gradients_of(model, partition.stages));
  };
  const auto whole = run(plain_partition(2, 3));
  for (std::uint32_t slices : {2u, 3u, 11u}) {
    const auto sliced = run(plain_partition(2, 3, slices));
    CHECK(sliced.first == doctest::Approx(whole.first).epsilon(1e-6));
    CHECK(difference(sliced.second, whole.second) < 1e-5);
  }
  Partition uneven = plain_partition(2, 3, 4);
  uneven.sizes.slices = {{5, 1, 3, 2}, {1, 1, 1, 8}, {8, 1, 1, 1}};
  const auto sliced = run(uneven);
  CHECK(sliced.first == doctest::Approx(whole.first).epsilon(1e-6));
  CHECK(difference(sliced.second, whole.second) < 1e-5);
}

TEST_CASE("what is recomputed leaves the gradients as they are, to the last bit; without it they are no numbers") {
  ModelConfig config = tiny();
  config.blocks = 3;
  for (std::uint32_t slices : {1u, 3u}) {
    const Partition plain = plain_partition(2, 2, slices);
    Partition again = plain;
    again.recomputed.assign(again.triples(), 1);
    // One that keeps all, among others that do not.
    again.recomputed[again.triple(1, 0, slices - 1)] = 0;
    Transformer model(config, text());
    Transformer other(config, text());
    REQUIRE(model.configure(plain));
    REQUIRE(other.configure(again));
    model.create();
    other.create();
    CHECK(pass(model, plain, true) == pass(other, again, true));
    CHECK(gradients_of(model, 2) == gradients_of(other, 2));

    const AlignedBytes memory(other.stash_bytes(StageId(1)));
    const AlignedBytes value(other.payload_bytes("activation"));
    const std::vector<std::byte*> stashes(slices, memory.data());
    Part part;
    part.recomputed = true;
    part.ends = true;
    part.stashes = stashes;
    Stage& stage = *other.stage(StageId(1));
    stage.forward(part, value.data(), nullptr);
    stage.input_gradient(part, nullptr, value.data());
    CHECK(std::isnan(value.floats()[0]));
  }
}

TEST_CASE("two models side by side: each gets the gradient of its share of the mean") {
  ModelConfig config = tiny();
  config.blocks = 4;
  // Microbatch 1 goes through stages 2 and 3, the others through 0 and 1.
  Partition pair = plain_partition(4, 4);
  pair.routes = {{StageId(0), StageId(1)}, {StageId(2), StageId(3)}};
  pair.route_of = {0, 1, 0, 0};
  Transformer both(config, text());
  REQUIRE(both.configure(pair));
  both.create();
  const double loss = pass(both, pair, true);
  CHECK(loss == doctest::Approx(std::log(256)).epsilon(0.01));
  // Embedding, two blocks and head in each.
  CHECK(both.stage(StageId(0))->parameters().size() == both.stage(StageId(2))->parameters().size());
  CHECK(both.stage(StageId(2))->parameters()[0].name == "embedding.bytes");
  // The rows of the text that microbatch 1 reads are the only ones that the second embedding hears of.
  const ParameterView bytes = both.stage(StageId(2))->parameters()[0];
  double sum = 0;
  const float* gradient = static_cast<const float*>(bytes.gradient);
  for (std::size_t i = 0; i < bytes.count; ++i) sum += std::abs(static_cast<double>(gradient[i]));
  CHECK(sum > 0);
}

TEST_CASE("a route may skip stages and take them in another order") {
  ModelConfig config = tiny();
  Partition partition = plain_partition(3, 2);
  partition.routes = {{StageId(0), StageId(2), StageId(1)}, {StageId(1), StageId(2)}};
  partition.route_of = {0, 1};
  Transformer model(config, text());
  REQUIRE(model.configure(partition));
  model.create();
  CHECK(pass(model, partition, true) == doctest::Approx(std::log(256)).epsilon(0.01));
  const auto gradients = gradients_of(model, 3);
  for (const auto& tensor : gradients) CHECK(tensor != std::vector<float>(tensor.size(), 0.0f));
}

TEST_CASE("spans of tokens: by ratio, at least one, together all") {
  Partition partition = plain_partition(1, 2, 3);
  const auto counts = [&](std::uint32_t sequence, std::uint32_t m) {
    const Result<TokenSpans> spans = TokenSpans::make(sequence, partition);
    REQUIRE(spans);
    std::vector<std::uint32_t> result;
    for (std::uint32_t q = 0; q < partition.slices_of(m); ++q) result.push_back(spans.value().at(m, q).count);
    return result;
  };
  CHECK(counts(64, 0) == std::vector<std::uint32_t>{21, 22, 21});
  partition.sizes.slices = {{3, 3, 2}};
  CHECK(counts(64, 1) == std::vector<std::uint32_t>{24, 24, 16});
  partition.sizes.slices = {{1000000, 1, 1}, {1, 1, 1000000}};
  CHECK(counts(64, 0) == std::vector<std::uint32_t>{62, 1, 1});
  CHECK(counts(64, 1) == std::vector<std::uint32_t>{1, 1, 62});
  CHECK(counts(3, 1) == std::vector<std::uint32_t>{1, 1, 1});
  partition.sizes.microbatches = {6, 3};
  partition.sizes.slices.clear();
  CHECK(counts(12, 0) == std::vector<std::uint32_t>{4, 4, 4});
  CHECK(counts(12, 1) == std::vector<std::uint32_t>{2, 2, 2});
  // Slices of each microbatch's own number: without sizes of the microbatches, their sums stand for them.
  partition.sizes.microbatches.clear();
  partition.sizes.slices = {{2}, {3, 2, 3}};
  partition.own_slices = {1, 3};
  CHECK(counts(32, 0) == std::vector<std::uint32_t>{8});
  CHECK(counts(32, 1) == std::vector<std::uint32_t>{12, 8, 12});
  partition.sizes.slices = {{100}, {1, 1, 1}};
  CHECK(counts(32, 0) == std::vector<std::uint32_t>{32});
  CHECK(counts(32, 1) == std::vector<std::uint32_t>{1, 1, 1});
  CHECK(TokenSpans::make(2, partition).failure().message ==
        "the schedule cuts a microbatch into 3 slices, but a sequence has only 2 tokens");
}

TEST_CASE("microbatches may be under way at once, and the order of I does not matter") {
  const ModelConfig config = tiny();
  Transformer one(config, text());
  Transformer other(config, text());
  for (Transformer* model : {&one, &other}) {
    REQUIRE(model->configure(plain_partition(1, 2)));
    model->create();
  }
  pass(one, 1, 2, true);
  const AlignedBytes memory[] = {AlignedBytes(other.stash_bytes(StageId(0))),
                                 AlignedBytes(other.stash_bytes(StageId(0)))};
  std::byte* const stashes[] = {memory[0].data(), memory[1].data()};
  const auto part = [&](std::uint32_t m) { return test::whole(m, &stashes[m], true, true); };
  Stage& stage = *other.stage(StageId(0));
  stage.begin_step(0);
  for (std::uint32_t m : {0u, 1u}) stage.forward(part(m), nullptr, nullptr);
  for (std::uint32_t m : {1u, 0u}) stage.input_gradient(part(m), nullptr, nullptr);
  for (std::uint32_t m : {0u, 1u}) stage.weight_gradient(part(m));
  const std::vector<ParameterView> a = one.stage(StageId(0))->parameters();
  const std::vector<ParameterView> b = stage.parameters();
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK(std::memcmp(a[i].gradient, b[i].gradient, a[i].count * sizeof(float)) == 0);
}

TEST_CASE("frozen groups get no gradient, the others the same one") {
  const ModelConfig config = tiny();
  const auto gradients = [&](double ratio) {
    Transformer model(config, text(), FreezeRatios{{ratio}});
    REQUIRE(model.configure(plain_partition(1, 1)));
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

TEST_CASE("blocks are dealt out as the schedule sizes its stages") {
  Partition partition = plain_partition(3, 1);
  partition.sizes.stages = {1, 3, 2};
  const auto tensors = [&](std::uint32_t blocks) {
    ModelConfig config = tiny();
    config.blocks = blocks;
    Transformer model(config, text());
    REQUIRE(model.configure(partition));
    model.create();
    std::vector<std::size_t> result;
    for (std::uint32_t s = 0; s < 3; ++s) result.push_back(model.stage(StageId(s))->parameters().size());
    return result;
  };
  // Embeddings of bytes and positions in front; the final norm and the logits behind; 12 tensors a block.
  CHECK(tensors(0) == std::vector<std::size_t>{2 + 12, 3 * 12, 2 * 12 + 3});
  CHECK(tensors(3) == std::vector<std::size_t>{2 + 12, 12, 12 + 3});
  CHECK(tensors(12) == std::vector<std::size_t>{2 + 2 * 12, 6 * 12, 4 * 12 + 3});
  partition.sizes.stages = {1024, 1, 1};
  ModelConfig config = tiny();
  config.blocks = 0;
  CHECK(Transformer(config, text()).configure(partition).failure().message ==
        "the schedule has 1026 layers in its stages; a model has at most 1024 blocks, which --blocks deals out by the "
        "same ratio");
}

TEST_CASE("a model that does not fit the schedule is refused") {
  ModelConfig config = tiny();
  config.blocks = 3;
  CHECK(Transformer(config, text()).configure(plain_partition(4, 1)).failure().message ==
        "blocks is 3, but the schedule has 4 stages, and each needs one");
  config = tiny();
  config.sequence = 4096;
  CHECK(!Transformer(config, text()).configure(plain_partition(1, 1)));
  CHECK(!Transformer(tiny(), nullptr).configure(plain_partition(1, 1)));
  CHECK(!Transformer(tiny(), text(), FreezeRatios{{1, 1}}).configure(plain_partition(1, 1)));
}

TEST_CASE("training lowers the loss") {
  ModelConfig config = tiny();
  config.steps = 60;
  config.learning_rate = 0.02;
  Transformer model(config, text());
  const Result<double> first = run_reference(model, plain_partition(2, 4), 1);
  REQUIRE(first);
  Transformer again(config, text());
  const Result<double> last = run_reference(again, plain_partition(2, 4), 60);
  REQUIRE(last);
  CHECK(first.value() == doctest::Approx(std::log(256)).epsilon(0.01));
  CHECK(last.value() < 3.5);
}

}  // namespace
}  // namespace stave
