#include "executor/cuda/host_workload.h"

#include <deque>
#include <functional>

#include "executor/cuda/check.h"
#include "executor/reduction.h"

namespace stave {

namespace {

// Calls that a stream runs once, and those of a graph, which it runs again and again.
class Calls {
 public:
  void enqueue(cudaStream_t stream, std::function<void()> call) {
    cudaStreamCaptureStatus captures = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &captures), "cudaStreamIsCapturing");
    std::deque<std::function<void()>>& all = captures == cudaStreamCaptureStatusNone ? once_ : kept_;
    all.push_back(std::move(call));
    const auto run = [](void* data) { (*static_cast<std::function<void()>*>(data))(); };
    check(cudaLaunchHostFunc(stream, run, &all.back()), "cudaLaunchHostFunc");
  }
  /// Once the stream has run all.
  void forget() { once_.clear(); }

 private:
  std::deque<std::function<void()>> once_;
  std::deque<std::function<void()>> kept_;
};

}  // namespace

class HostStage : public Stage {
 public:
  HostStage(Stage* inner, cudaStream_t stream)
      : inner_(inner), stream_(stream), gradients_(inner == nullptr ? GradientView() : inner->gradients()) {}

  void begin_step(std::uint64_t step) override {
    calls_.forget();
    put([this, step] { inner_->begin_step(step); });
  }
  void forward(const Part& part, const std::byte* input, std::byte* output) override {
    put_part(part, [this, input, output](const Part& p) { inner_->forward(p, input, output); });
  }
  void recompute(const Part& part) override {
    put_part(part, [this](const Part& p) { inner_->recompute(p); });
  }
  void input_gradient(const Part& part, const std::byte* gradient, std::byte* output) override {
    put_part(part, [this, gradient, output](const Part& p) { inner_->input_gradient(p, gradient, output); });
  }
  void weight_gradient(const Part& part) override {
    put_part(part, [this](const Part& p) { inner_->weight_gradient(p); });
  }
  void optimizer_step(std::uint32_t from, std::uint32_t to) override {
    put([this, from, to] { inner_->optimizer_step(from, to); });
  }
  void settle(std::uint32_t newest) override {
    put([this, newest] { inner_->settle(newest); });
  }
  std::span<std::byte> weights(std::uint32_t version) override { return inner_->weights(version); }
  GradientView gradients() override {
    put([this] { inner_->gradients(); });
    return gradients_;
  }
  std::vector<ParameterView> parameters() const override { return inner_->parameters(); }
  std::vector<std::span<std::byte>> state() override { return inner_->state(); }

 private:
  void put(std::function<void()> call) { calls_.enqueue(stream_, std::move(call)); }

  // The caller's list of stashes does not outlive the call.
  template <class Call>
  void put_part(const Part& part, Call call) {
    put([part, stashes = std::vector<std::byte*>(part.stashes.begin(), part.stashes.end()), call] {
      Part mine = part;
      mine.stashes = stashes;
      call(mine);
    });
  }

  Stage* inner_;
  cudaStream_t stream_;
  GradientView gradients_;
  Calls calls_;
};

HostWorkload::HostWorkload(Workload& inner, LaneOf lane_of) : inner_(inner), lane_of_(std::move(lane_of)) {}
HostWorkload::~HostWorkload() = default;

Result<void> HostWorkload::configure(const Partition& partition) {
  partition_ = partition;
  return inner_.configure(partition);
}

void HostWorkload::create() {
  inner_.create();
  stages_.clear();
  sums_.clear();
  for (std::uint32_t s = 0; s < partition_.stages; ++s) {
    stages_.emplace_back();
    for (std::uint32_t r = 0; r < partition_.devices[StageId(s)].size(); ++r) {
      Stage* mine = inner_.stage(StageId(s), r);
      const cudaStream_t stream = lane_of_(partition_.devices[StageId(s)][r]).stream;
      stages_.back().push_back(mine == nullptr ? nullptr : std::make_unique<HostStage>(mine, stream));
    }
  }
}

Stage* HostWorkload::stage(StageId s, std::uint32_t replica) {
  return s.value < stages_.size() && replica < stages_[s.value].size() ? stages_[s.value][replica].get() : nullptr;
}

void HostWorkload::enqueue_sum(StageId s, cudaStream_t stream) {
  // Alike in every step: made once.
  if (sums_.size() <= s.value) sums_.resize(partition_.stages);
  if (sums_[s.value] == nullptr)
    sums_[s.value] = std::make_unique<std::function<void()>>(
        [replicas = replicas_of(partition_, inner_, s)] { reduce_gradients(replicas); });
  const auto run = [](void* data) { (*static_cast<std::function<void()>*>(data))(); };
  check(cudaLaunchHostFunc(stream, run, sums_[s.value].get()), "cudaLaunchHostFunc");
}

}  // namespace stave
