// The language model's stages on a GPU, or on the stand-in for one, against those on the CPU: random models, cuts,
// slices, recomputed and frozen parts, eager and captured.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "executor/aligned.h"
#include "executor/cuda/check.h"
#include "executor/cuda/memory.h"
#include "executor/cuda/transformer.h"
#include "executor/random.h"

namespace stave {
namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

std::shared_ptr<const Corpus> text() {
  std::vector<std::uint8_t> bytes;
  RandomStream random(5);
  for (int i = 0; i < 4000; ++i) bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
  return std::make_shared<Corpus>(bytes);
}

struct Case {
  ModelConfig config;
  Partition partition;
  FreezeRatios freeze;
  std::string name;
};

Case random_case(std::uint64_t seed) {
  RandomStream random(mix(seed));
  Case c;
  c.config.heads = 1 + static_cast<std::uint32_t>(random.below(3));
  c.config.width = c.config.heads * (2 + static_cast<std::uint32_t>(random.below(30)));
  c.config.width = std::max(c.config.width, 4u) / c.config.heads * c.config.heads;
  if (c.config.width < 4) c.config.width = 4 * c.config.heads;
  c.config.sequence = 6 + static_cast<std::uint32_t>(random.below(90));
  c.config.rows = 1 + static_cast<std::uint32_t>(random.below(3));
  c.config.steps = 4;
  c.config.seed = seed;
  const auto stages = 1 + static_cast<std::uint32_t>(random.below(3));
  const auto microbatches = 1 + static_cast<std::uint32_t>(random.below(3));
  const auto slices = 1 + static_cast<std::uint32_t>(random.below(3));
  c.config.blocks = stages + static_cast<std::uint32_t>(random.below(2));
  c.partition = plain_partition(stages, microbatches, slices);
  if (random.below(2) == 0) {
    c.partition.sizes.slices = {{}};
    for (std::uint32_t q = 0; q < slices; ++q)
      c.partition.sizes.slices[0].push_back(1 + static_cast<std::uint32_t>(random.below(3)));
  }
  if (random.below(2) == 0)
    for (std::uint32_t m = 0; m < microbatches; ++m)
      c.partition.sizes.microbatches.push_back(1 + static_cast<std::uint32_t>(random.below(2)));
  if (random.below(2) == 0)
    for (std::size_t i = 0; i < c.partition.triples(); ++i)
      c.partition.recomputed.push_back(static_cast<std::uint8_t>(random.below(2)));
  if (random.below(2) == 0)
    for (std::uint32_t i = 0; i < stages * microbatches; ++i)
      c.freeze.ratio.push_back(static_cast<double>(random.below(5)) / 4);
  if (random.below(2) == 0)
    for (std::uint32_t s = 0; s < stages; ++s) c.partition.kept.push_back(2);
  c.name = "seed " + std::to_string(seed) + ": width " + std::to_string(c.config.width) + ", heads " +
           std::to_string(c.config.heads) + ", sequence " + std::to_string(c.config.sequence) + ", rows " +
           std::to_string(c.config.rows) + ", blocks " + std::to_string(c.config.blocks) + ", stages " +
           std::to_string(stages) + ", microbatches " + std::to_string(microbatches) + ", slices " +
           std::to_string(slices) + (c.partition.recomputed.empty() ? "" : ", recomputed") +
           (c.freeze.ratio.empty() ? "" : ", frozen") + (c.partition.kept.empty() ? "" : ", two versions");
  return c;
}

/// Where a model's buffers lie and how its steps are run.
struct Home {
  std::function<std::shared_ptr<std::byte>(std::size_t)> allocate;
  /// Runs what a step enqueues, and waits for it.
  std::function<void(std::uint64_t step, const std::function<void()>&)> run;
  std::function<void()> wait;
  /// Done once it is waited for.
  std::function<void(void* to, const void* from, std::size_t bytes)> copy;
};

Home host() {
  const auto allocate = [](std::size_t size) {
    const auto bytes = std::make_shared<AlignedBytes>(size);
    return std::shared_ptr<std::byte>(bytes, bytes->data());
  };
  return {allocate, [](std::uint64_t, const std::function<void()>& enqueue) { enqueue(); }, [] {},
          [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }};
}

/// A step is enqueued, but the last ones: step 1 is captured, and its graph launched for all from then on.
Home gpu(cudaStream_t stream) {
  const auto allocate = [](std::size_t size) {
    const auto bytes = std::make_shared<DeviceBytes>(size);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return std::shared_ptr<std::byte>(bytes, bytes->data());
  };
  const auto captured = std::make_shared<cudaGraphExec_t>(nullptr);
  const auto run = [=](std::uint64_t step, const std::function<void()>& enqueue) {
    if (step == 0) {
      enqueue();
    } else {
      if (*captured == nullptr) {
        cudaGraph_t graph = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        enqueue();
        check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
        check(cudaGraphInstantiate(captured.get(), graph, 0), "cudaGraphInstantiate");
      }
      check(cudaGraphLaunch(*captured, stream), "cudaGraphLaunch");
    }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  };
  return {allocate, run, [=] { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); },
          [=](void* to, const void* from, std::size_t bytes) {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
          }};
}

/// What a step has come to; of all tensors, one after another.
struct Outcome {
  double loss = 0;
  std::vector<float> gradients;
  std::vector<float> values;
};

/// Runs steps of a model: all forwards, then all input gradients, then all weight gradients, and an update. A part has a
/// stash, and a buffer that is all its messages.
class Trainer {
 public:
  Trainer(Workload& model, const Case& c, Home home) : model_(model), partition_(c.partition), home_(std::move(home)) {
    const auto take = [&](std::size_t bytes) { return memory_.emplace_back(home_.allocate(bytes)).get(); };
    stashes_.resize(std::size_t{partition_.stages} * partition_.microbatches);
    values_.resize(partition_.microbatches);
    for (std::uint32_t q = 0; q < partition_.slices; ++q) {
      for (std::uint32_t m = 0; m < partition_.microbatches; ++m) {
        values_[m].push_back(take(model_.payload_bytes("activation")));
        for (std::uint32_t s = 0; s < partition_.stages; ++s)
          stashes_[s * partition_.microbatches + m].push_back(take(model_.stash_bytes(StageId(s))));
      }
    }
  }

  Outcome step(std::uint64_t number) {
    const std::uint32_t newest = partition_.kept.empty() ? 0 : 1;
    for (std::uint32_t s = 0; s < partition_.stages; ++s) stage(s)->begin_step(number);
    home_.run(number, [&] { enqueue(newest); });
    for (std::uint32_t s = 0; s < partition_.stages; ++s) stage(s)->settle(newest);
    home_.wait();
    Outcome result;
    result.loss = model_.loss();
    std::size_t count = 0;
    for (std::uint32_t s = 0; s < partition_.stages; ++s)
      for (const ParameterView& p : stage(s)->parameters()) count += p.count;
    result.gradients.resize(count);
    result.values.resize(count);
    std::size_t at = 0;
    for (std::uint32_t s = 0; s < partition_.stages; ++s) {
      for (const ParameterView& p : stage(s)->parameters()) {
        home_.copy(&result.gradients[at], p.gradient, p.count * sizeof(float));
        home_.copy(&result.values[at], p.value, p.count * sizeof(float));
        at += p.count;
      }
    }
    home_.wait();
    return result;
  }

  /// Goes on from where another one is.
  void take_state(Trainer& from) {
    for (std::uint32_t s = 0; s < partition_.stages; ++s) {
      const std::vector<std::span<std::byte>> mine = stage(s)->state();
      const std::vector<std::span<std::byte>> theirs = from.stage(s)->state();
      expect(mine.size() == theirs.size(), "states of different kinds");
      for (std::size_t i = 0; i < mine.size(); ++i) {
        expect(mine[i].size() == theirs[i].size(), "states of different sizes");
        home_.copy(mine[i].data(), theirs[i].data(), mine[i].size());
      }
    }
    home_.wait();
  }

 private:
  Stage* stage(std::uint32_t s) const { return model_.stage(StageId(s)); }

  Part part(std::uint32_t s, std::uint32_t m, std::uint32_t q) const {
    Part result;
    result.microbatch = m;
    result.slice = q;
    result.begins = partition_.begins(StageId(s), m);
    result.ends = partition_.ends(StageId(s), m);
    result.recomputed = partition_.is_recomputed(s, m, q);
    result.stashes = stashes_[s * partition_.microbatches + m];
    return result;
  }

  void enqueue(std::uint32_t newest) {
    for (std::uint32_t m = 0; m < partition_.microbatches; ++m)
      for (std::uint32_t q = 0; q < partition_.slices; ++q)
        for (std::uint32_t s = 0; s < partition_.stages; ++s)
          stage(s)->forward(part(s, m, q), values_[m][q], s + 1 == partition_.stages ? nullptr : values_[m][q]);
    for (std::uint32_t m = 0; m < partition_.microbatches; ++m)
      for (std::uint32_t q = partition_.slices; q-- > 0;)
        for (std::uint32_t s = partition_.stages; s-- > 0;) {
          if (partition_.is_recomputed(s, m, q)) stage(s)->recompute(part(s, m, q));
          stage(s)->input_gradient(part(s, m, q), values_[m][q], values_[m][q]);
        }
    for (std::uint32_t m = 0; m < partition_.microbatches; ++m)
      for (std::uint32_t q = 0; q < partition_.slices; ++q)
        for (std::uint32_t s = 0; s < partition_.stages; ++s) stage(s)->weight_gradient(part(s, m, q));
    for (std::uint32_t s = 0; s < partition_.stages; ++s) stage(s)->optimizer_step(0, newest);
  }

  Workload& model_;
  const Partition& partition_;
  Home home_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<std::vector<std::byte*>> stashes_;
  std::vector<std::vector<std::byte*>> values_;
};

float greatest(const std::vector<float>& values) {
  float most = 0;
  for (float v : values) most = std::max(most, std::abs(v));
  return most;
}

/// Gradients may differ by `tolerance` of the greatest. An update is as large for a gradient that is nothing but rounding
/// as for any other, so that weights are compared where the gradient is more than that.
void compare(const std::string& where, const Outcome& expected, const Outcome& found, double tolerance) {
  expect(std::abs(found.loss - expected.loss) <= tolerance * (1 + std::abs(expected.loss)),
         where + ": loss " + std::to_string(found.loss) + " instead of " + std::to_string(expected.loss));
  const std::vector<float>& g = expected.gradients;
  const double allowed = tolerance * static_cast<double>(greatest(g));
  double worst = 0;
  double worst_weight = 0;
  for (std::size_t j = 0; j < g.size(); ++j) {
    const double difference = std::abs(static_cast<double>(found.gradients[j]) - static_cast<double>(g[j]));
    if (!(difference <= worst)) worst = difference;
    if (static_cast<double>(std::abs(g[j])) < 1000 * allowed) continue;
    const double change = std::abs(static_cast<double>(found.values[j]) - static_cast<double>(expected.values[j]));
    if (!(change <= worst_weight)) worst_weight = change;
  }
  expect(worst <= allowed, where + ": a gradient differs by " + std::to_string(worst / allowed) + " of what may be");
  expect(worst_weight <= tolerance, where + ": a weight differs by " + std::to_string(worst_weight));
}

int run(std::uint64_t models) {
  int gpus = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&gpus); status != cudaSuccess || gpus == 0) {
    std::printf("skipped: no GPU here (%s)\n", cudaGetErrorString(status));
    return 77;
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  const auto lane_of = [&](DeviceId) { return CudaLane{0, stream}; };
  for (std::uint64_t seed = 1; seed <= models; ++seed) {
    const Case c = random_case(seed);
    Transformer cpu(c.config, text(), c.freeze);
    CudaTransformer cuda(c.config, text(), c.freeze, lane_of);
    CudaTransformer rounded(c.config, text(), c.freeze, lane_of, Precision::BFloat16);
    for (Workload* each : {static_cast<Workload*>(&cpu), static_cast<Workload*>(&cuda), static_cast<Workload*>(&rounded)}) {
      const Result<void> made = each->configure(c.partition);
      if (!made) {
        expect(false, c.name + ": " + made.failure().message);
        return 1;
      }
      each->create();
    }
    Trainer on_cpu(cpu, c, host());
    Trainer on_gpu(cuda, c, gpu(stream));
    for (std::uint64_t step = 0; step < 3; ++step) {
      // From one state, as the least of differences grows: an update hardly depends on how large a gradient is.
      if (step != 0) on_gpu.take_state(on_cpu);
      const Outcome expected = on_cpu.step(step);
      const std::string where = c.name + ", step " + std::to_string(step);
      compare(where, expected, on_gpu.step(step), 1e-5);
      // Eight bits of a factor are kept, so that a product is off by up to 2^-8 and sums by less.
      if (step == 0) compare(where + ", bf16", expected, Trainer(rounded, c, gpu(stream)).step(0), 0.02);
    }
  }
  std::printf("%d models, %d failures\n", static_cast<int>(models), failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stave

/// The argument is the number of models.
int main(int argc, char** argv) {
  try {
    return stave::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 24);
  } catch (const std::exception& e) {
    std::printf("FAILED: %s\n", e.what());
    return 1;
  }
}
