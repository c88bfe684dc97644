#include "executor/profile.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include "executor/aligned.h"
#include "executor/clock.h"
#include "executor/cpu/matmul.h"

namespace stave {

namespace {

constexpr std::uint32_t kWarmUp = 2;
constexpr std::size_t kLeastCopy = std::size_t{1} << 20;
constexpr int kRoundTrips = 200;
constexpr int kCopies = 32;

// That of the lower half where they are even in number; 0 of none.
Ticks median(std::vector<Ticks> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Every kind of op of one stage, over the repeats.
struct Samples {
  std::vector<Ticks> forward, input, weight, backward, recompute, update;

  StageTimes medians() const {
    StageTimes result;
    result[Operation::Forward] = median(forward);
    result[Operation::InputGradient] = median(input);
    result[Operation::WeightGradient] = median(weight);
    result[Operation::Backward] = median(backward);
    result[Operation::Recompute] = median(recompute);
    result[Operation::Optimizer] = median(update);
    return result;
  }
};

class Profiler {
 public:
  Profiler(Workload& workload, const Partition& partition)
      : workload_(workload),
        partition_(partition),
        value_(std::max(workload.payload_bytes("activation"), workload.payload_bytes("gradient"))),
        samples_(partition.stages) {
    for (std::uint32_t s = 0; s < partition.stages; ++s) {
      stashes_.emplace_back();
      for (std::uint32_t q = 0; q < partition.slices && visited(s); ++q)
        stashes_.back().push_back(memory_.emplace_back(workload.stash_bytes(StageId(s))).data());
    }
  }

  /// Sum of all lengths. What is measured counts if `keep`.
  Ticks microbatch(std::uint32_t m, bool fused, bool keep) {
    keep_ = keep;
    sum_ = 0;
    const std::vector<StageId>& route = partition_.route(m);
    const std::uint32_t slices = partition_.slices_of(m);
    for (std::uint32_t q = 0; q < slices; ++q)
      for (StageId s : route) forward(s, m, q);
    for (std::uint32_t q = slices; q-- > 0;)
      for (auto s = route.rbegin(); s != route.rend(); ++s) backward(*s, m, q, fused);
    for (std::uint32_t q = slices; q-- > 0 && !fused;)
      for (auto s = route.rbegin(); s != route.rend(); ++s)
        time(samples_[s->value].weight, [&] { workload_.stage(*s)->weight_gradient(part(*s, m, q)); });
    return sum_;
  }

  void step(std::uint64_t step) {
    for (std::uint32_t s = 0; s < partition_.stages; ++s)
      if (visited(s)) workload_.stage(StageId(s))->begin_step(step);
  }

  void update(bool keep) {
    keep_ = keep;
    for (std::uint32_t s = 0; s < partition_.stages; ++s) {
      if (!visited(s)) continue;
      Stage& stage = *workload_.stage(StageId(s));
      time(samples_[s].update, [&] { stage.optimizer_step(0, 0); });
      stage.settle(0);
    }
  }

  IdVector<StageId, StageTimes> times() const {
    IdVector<StageId, StageTimes> result;
    for (const Samples& each : samples_) result.push_back(each.medians());
    return result;
  }

 private:
  bool visited(std::uint32_t s) const { return !partition_.devices[StageId(s)].empty(); }

  Part part(StageId s, std::uint32_t m, std::uint32_t q) const {
    Part result;
    result.microbatch = m;
    result.slice = q;
    result.begins = partition_.begins(s, m);
    result.ends = partition_.ends(s, m);
    result.recomputed = partition_.is_recomputed(s.value, m, q);
    result.stashes = stashes_[s.value];
    return result;
  }

  template <class F>
  void time(std::vector<Ticks>& samples, const F& f) {
    const Ticks start = thread_cpu_ns();
    f();
    const Ticks length = thread_cpu_ns() - start;
    sum_ += length;
    if (keep_) samples.push_back(length);
  }

  void forward(StageId s, std::uint32_t m, std::uint32_t q) {
    const Part mine = part(s, m, q);
    time(samples_[s.value].forward, [&] {
      workload_.stage(s)->forward(mine, mine.begins ? nullptr : value_.data(), mine.ends ? nullptr : value_.data());
    });
  }

  void backward(StageId s, std::uint32_t m, std::uint32_t q, bool fused) {
    const Part mine = part(s, m, q);
    Stage& stage = *workload_.stage(s);
    if (mine.recomputed) time(samples_[s.value].recompute, [&] { stage.recompute(mine); });
    const auto input = [&] {
      stage.input_gradient(mine, mine.ends ? nullptr : value_.data(), mine.begins ? nullptr : value_.data());
    };
    if (!fused) return time(samples_[s.value].input, input);
    time(samples_[s.value].backward, [&] {
      input();
      stage.weight_gradient(mine);
    });
  }

  Workload& workload_;
  const Partition& partition_;
  AlignedBytes value_;
  std::vector<AlignedBytes> memory_;
  // By stage and slice.
  std::vector<std::vector<std::byte*>> stashes_;
  std::vector<Samples> samples_;
  bool keep_ = false;
  Ticks sum_ = 0;
};

// Half of a median round trip between this thread and another.
Ticks latency() {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    for (int i = 0; i < kRoundTrips; ++i) {
      changed.wait(lock, [&] { return turn == 1; });
      turn = 0;
      changed.notify_one();
    }
  });
  std::vector<Ticks> trips;
  {
    std::unique_lock lock(mutex);
    for (int i = 0; i < kRoundTrips; ++i) {
      const Ticks start = now_ns();
      turn = 1;
      changed.notify_one();
      changed.wait(lock, [&] { return turn == 0; });
      trips.push_back(now_ns() - start);
    }
  }
  other.join();
  return median(std::move(trips)) / 2;
}

double bandwidth(std::size_t bytes) {
  const AlignedBytes from(bytes);
  const AlignedBytes to(bytes);
  std::vector<Ticks> copies;
  for (int i = 0; i < kCopies; ++i) {
    const Ticks start = thread_cpu_ns();
    std::memcpy(to.data(), from.data(), bytes);
    copies.push_back(thread_cpu_ns() - start);
  }
  return static_cast<double>(bytes) / static_cast<double>(std::max<Ticks>(1, median(std::move(copies))));
}

// Copies messages on a thread of its own as long as it lives.
class Copier {
 public:
  explicit Copier(std::size_t bytes) : from_(bytes), to_(bytes), thread_([this] { copy(); }) {}
  ~Copier() {
    ends_ = true;
    thread_.join();
  }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

 private:
  void copy() const {
    while (!ends_) std::memcpy(to_.data(), from_.data(), from_.size());
  }

  AlignedBytes from_;
  AlignedBytes to_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

ModelProfile measure(Workload& workload, const Partition& partition, std::uint32_t repeats) {
  use_one_thread();
  Profiler profiler(workload, partition);
  ModelProfile result;
  const std::size_t bytes =
      std::max({kLeastCopy, workload.payload_bytes("activation"), workload.payload_bytes("gradient")});
  std::uint64_t step = 0;
  std::uint32_t m = 0;
  // Both ways of a backward, as a step of its own.
  const auto once = [&](bool keep) {
    profiler.step(step++);
    Ticks sum = 0;
    for (bool fused : {false, true}) {
      sum += profiler.microbatch(m, fused, keep);
      m = (m + 1) % partition.microbatches;
    }
    profiler.update(keep);
    return sum;
  };
  for (std::uint32_t i = 0; i < kWarmUp; ++i) once(false);
  std::vector<Ticks> alone;
  for (std::uint32_t i = 0; i < repeats; ++i) alone.push_back(once(true));
  result.stages = profiler.times();
  result.link = {latency(), bandwidth(bytes)};
  std::vector<Ticks> beside;
  {
    const Copier copier(bytes);
    for (std::uint32_t i = 0; i < (repeats + 1) / 2; ++i) beside.push_back(once(false));
  }
  result.slow_down = static_cast<double>(median(std::move(beside))) /
                     static_cast<double>(std::max<Ticks>(1, median(std::move(alone))));
  return result;
}

}  // namespace

Ticks LinkTimes::message_ns(std::size_t bytes) const {
  return latency_ns + static_cast<Ticks>(static_cast<double>(bytes) / bytes_per_ns);
}

void take_lengths(ModelProfile& profile, const OpSet& ops, const std::vector<TypicalLength>& lengths) {
  struct Mean {
    Ticks sum = 0;
    std::uint32_t samples = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Mean> pairs;
  IdVector<StageId, StageTimes> in_run;
  in_run.assign(profile.stages.size(), {});
  for (const TypicalLength& each : lengths) {
    if (each.with.valid()) {
      Mean& mean = pairs[{each.kind.value, each.with.value}];
      mean.sum += each.length_ns * each.samples;
      mean.samples += each.samples;
    } else if (each.stage.valid()) {
      in_run[each.stage][ops.kinds()[each.kind].operation] = each.length_ns;
    }
  }
  for (const auto& [kinds, mean] : pairs)
    profile.pairs.push_back({KindId(kinds.first), KindId(kinds.second), mean.sum / mean.samples});
  for (std::uint32_t s = 0; s < profile.stages.size(); ++s) {
    StageTimes& alone = profile.stages[StageId(s)];
    const StageTimes& run = in_run[StageId(s)];
    Ticks sum_alone = 0;
    Ticks sum_run = 0;
    for (std::size_t i = 0; i < run.ns.size(); ++i) {
      if (run.ns[i] == 0 || alone.ns[i] == 0) continue;
      sum_alone += alone.ns[i];
      sum_run += run.ns[i];
    }
    const double scale = sum_alone > 0 ? static_cast<double>(sum_run) / static_cast<double>(sum_alone) : 1;
    for (std::size_t i = 0; i < run.ns.size(); ++i)
      alone.ns[i] = run.ns[i] > 0 ? run.ns[i] : std::llround(static_cast<double>(alone.ns[i]) * scale);
    alone[Operation::Declared] = 0;
  }
}

Result<ModelProfile> profile_model(Workload& workload, const Partition& partition, std::uint32_t repeats) {
  if (repeats < 1 || repeats > kMostRepeats)
    return Failure{"repeats is " + std::to_string(repeats) + ", but must lie between 1 and " +
                   std::to_string(kMostRepeats)};
  // What is recomputed stays so; every stage once, with one version of its weights.
  Partition plain = plainly(partition);
  plain.recomputed = partition.recomputed;
  plain.updates.assign(plain.stages, 0);
  plain.reads_version.clear();
  plain.used_by.clear();
  plain.kept.assign(0, 0);
  if (Result<void> fits = workload.configure(plain); !fits) return fits.failure();
  try {
    workload.create();
    return measure(workload, plain, repeats);
  } catch (const std::bad_alloc&) {
    return Failure{"not enough memory to profile the model"};
  } catch (const std::exception& error) {
    return Failure{std::string("a stage failed: ") + error.what()};
  }
}

}  // namespace stave
