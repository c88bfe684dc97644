#include "executor/run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "executor/aligned.h"
#include "executor/physical_memory.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/stage/integer.h"
#include "executor/stage/sleep.h"
#include "executor/stage/transformer.h"
#include "make_program.h"

namespace stave {
namespace {

using test::make;

// The times that follow from the length of every node: the recurrence of a Program, told once more.
Timeline recurrence(const Program& p, const std::vector<Ticks>& length) {
  Timeline t;
  t.start.assign(p.nodes(), 0);
  t.end.assign(p.nodes(), 0);
  std::vector<Ticks> lane(p.table.devices(), 0);
  std::vector<Ticks> edge(p.edges.size(), 0);
  for (NodeId n : p.order) {
    Ticks start = 0;
    for (NodeId before : p.waits[n.value]) start = std::max(start, t.end[before.value]);
    if (p.is_message(n)) {
      const Message& m = p.message(n);
      start = std::max({start, edge[m.edge.value], t.end[m.producer]});
      edge[m.edge.value] = start;
    } else {
      start = std::max(start, lane[p.table.device_of(n.value).value]);
    }
    t.start[n.value] = start;
    t.end[n.value] = start + length[n.value];
    if (!p.is_message(n)) lane[p.table.device_of(n.value).value] = t.end[n.value];
  }
  return t;
}

std::vector<Ticks> costs(const Program& p, Ticks op, Ticks message) {
  std::vector<Ticks> result(p.nodes(), op);
  std::fill(result.begin() + p.table.size(), result.end(), message);
  return result;
}

TEST_CASE("a device takes its time to change between two ops, planned or not") {
  const test::Order order = {{{'F', 0, 0}, {'B', 0, 0}, {'F', 0, 1}, {'B', 0, 1}}};
  const Program planned = make(order, 1, 2);
  for (const Program& p : {planned, test::lower_unchecked_by_hand(planned.table, 1, 2)}) {
    RunOptions options;
    options.clock = Clock::Virtual;
    options.cost_ns.assign(p.nodes(), 1);
    options.setup_ns = {0, 0, 5, 0};
    SleepWorkload workload;
    const Result<RunReport> report = run(p, workload, options);
    REQUIRE(report);
    CHECK(report.value().timeline.start == std::vector<Ticks>{0, 1, 7, 8});
    options.setup_ns = {0, 0, -5, 0};
    CHECK(!run(p, workload, options));
    options.setup_ns = {0};
    CHECK(run(p, workload, options).failure().message == "the prices of the changes between ops do not fit the program");
  }
}

TEST_CASE("sleeps on the virtual clock take exactly their costs: 1F1B 33, split with late W") {
  const Program p = make(test::one_f_one_b(4, 8), 4, 8);
  RunOptions options;
  options.clock = Clock::Virtual;
  options.cost_ns.assign(p.nodes(), 0);
  for (std::uint32_t i = 0; i < p.table.size(); ++i)
    options.cost_ns[i] = p.table.ops.kind(p.table.entries[i]).name == "B" ? 2 : 1;
  SleepWorkload sleep;
  const Result<RunReport> report = run(p, sleep, options);
  REQUIRE(report);
  CHECK(report.value().makespan_ns == 33);
  CHECK(report.value().bubble == doctest::Approx(3.0 / 11));
  const Timeline expected = recurrence(p, options.cost_ns);
  CHECK(report.value().timeline.start == expected.start);
  CHECK(report.value().timeline.end == expected.end);
  CHECK(report.value().timeline.unit == "us");
}

TEST_CASE("on the virtual clock the timeline follows from the length of each op, exactly") {
  const Program p = make(test::split_1f1b(4, 8, false), 4, 8);
  IntegerWorkload integers(4096);
  RunOptions options;
  options.clock = Clock::Virtual;
  options.steps = 5;
  options.cost_ns = costs(p, 0, 3000);
  const Result<RunReport> report = run(p, integers, options);
  REQUIRE(report);
  const Timeline& t = report.value().timeline;
  std::vector<Ticks> lengths(p.nodes());
  for (std::uint32_t n = 0; n < p.nodes(); ++n) lengths[n] = t.end[n] - t.start[n];
  CHECK(*std::min_element(lengths.begin(), lengths.begin() + p.table.size()) > 0);
  for (std::uint32_t n = p.table.size(); n < p.nodes(); ++n) CHECK(lengths[n] == 3000);
  const Timeline expected = recurrence(p, lengths);
  CHECK(t.start == expected.start);
  CHECK(t.end == expected.end);
  CHECK(report.value().losses.size() == 5);
  // F, I and W of four stages.
  CHECK(report.value().lengths.size() == 12);
  // Of five steps the first does not count; of the others the two in the middle do.
  for (const TypicalLength& each : report.value().lengths) CHECK(each.samples == 8 * 2);
}

TEST_CASE("sleeps on the wall clock come close to their costs") {
  const Program p = make(test::one_f_one_b(4, 4), 4, 4);
  SleepWorkload sleep;
  RunOptions options;
  options.cost_ns = costs(p, 3'000'000, 1'000'000);
  const Result<RunReport> report = run(p, sleep, options);
  REQUIRE(report);
  const Timeline exact = recurrence(p, options.cost_ns);
  const Ticks expected = *std::max_element(exact.end.begin(), exact.end.end());
  CHECK(report.value().makespan_ns >= expected);
  // Wide, for machines under load; the benchmark has the figure.
  CHECK(report.value().makespan_ns < 2 * expected);
  // From the first op on, as the makespan is.
  CHECK(std::ranges::min(report.value().timeline.start) == 0);
  CHECK(std::ranges::max(report.value().timeline.end) == report.value().makespan_ns);
  for (std::uint32_t n = 0; n < p.nodes(); ++n)
    for (NodeId before : p.waits[n])
      CHECK(report.value().timeline.start[n] >= report.value().timeline.end[before.value]);
}

// Integer stages whose ops take a random while, some yielding and some sleeping.
class Jittered : public IntegerWorkload {
 public:
  Jittered(std::uint64_t seed, FreezeRatios freeze = {}) : IntegerWorkload(48, 1, std::move(freeze)), seed_(seed) {}
  Stage* stage(StageId s, std::uint32_t replica = 0) override {
    Stage* inner = IntegerWorkload::stage(s, replica);
    std::unique_ptr<Late>& late = stages_[{s.value, replica}];
    if (!late && inner != nullptr) late = std::make_unique<Late>(*inner, mix(seed_, stages_.size()));
    return late.get();
  }

 private:
  class Late : public test::Wrapped {
   public:
    Late(Stage& stage, std::uint64_t seed) : random_(seed) { inner = &stage; }
    void before_op() override {
      const std::uint64_t what = random_.below(4);
      if (what == 0) std::this_thread::yield();
      if (what == 1) std::this_thread::sleep_for(std::chrono::microseconds(random_.below(200)));
    }

   private:
    RandomStream random_;
  };
  std::uint64_t seed_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Late>> stages_;
};

TEST_CASE("integers: random legal tables with random delays agree with the reference to the last bit") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed);
    const auto devices = static_cast<std::uint32_t>(1 + random.below(5));
    const auto stages = static_cast<std::uint32_t>(devices + random.below(devices + 2));
    const auto microbatches = static_cast<std::uint32_t>(1 + random.below(7));
    std::vector<std::uint32_t> place(stages);
    for (std::uint32_t s = 0; s < stages; ++s)
      place[s] = s < devices ? s : static_cast<std::uint32_t>(random.below(devices));
    FreezeRatios freeze;
    for (std::uint32_t i = 0; i < stages * microbatches && seed % 2 == 0; ++i) freeze.ratio.push_back(random.uniform());
    const Program p = make(test::random_order(seed, place, devices, microbatches), stages, microbatches);
    Jittered jittered(seed, freeze);
    IntegerWorkload plain(48, 1, freeze);
    RunOptions options;
    options.steps = 3;
    if (seed % 3 == 0) options.clock = Clock::Virtual;
    if (seed % 3 == 1) {
      options.cost_ns = costs(p, 0, 0);
      for (std::uint32_t n = p.table.size(); n < p.nodes(); ++n)
        options.cost_ns[n] = static_cast<Ticks>(random.below(100'000));
    }
    const Result<RunReport> report = run(p, jittered, options);
    REQUIRE_MESSAGE(report, report.failure().message);
    const Result<double> loss = run_reference(plain, plain_partition(stages, microbatches), 3);
    REQUIRE(loss);
    CHECK(report.value().losses.back() == loss.value());
    const Comparison comparison = compare_gradients(p.table, jittered, plain);
    CHECK(comparison.agrees);
    CHECK(comparison.exact == comparison.tensors);
  }
}

TEST_CASE("integers: a stale, swapped or doubled buffer changes the gradients") {
  IntegerWorkload workload;
  REQUIRE(workload.configure(plain_partition(1, 2)));
  const auto gradients = [&](std::uint32_t first, std::uint32_t second, int times) {
    workload.create();
    Stage& stage = *workload.stage(StageId(0));
    stage.begin_step(0);
    const AlignedBytes memory[] = {AlignedBytes(workload.stash_bytes(StageId(0))),
                                   AlignedBytes(workload.stash_bytes(StageId(0)))};
    std::byte* const stashes[] = {memory[0].data(), memory[1].data()};
    const auto part = [&](std::uint32_t m, std::uint32_t stash) { return test::whole(m, &stashes[stash], true, true); };
    for (std::uint32_t m : {0u, 1u}) stage.forward(part(m, m), nullptr, nullptr);
    stage.input_gradient(part(0, first), nullptr, nullptr);
    stage.input_gradient(part(1, second), nullptr, nullptr);
    for (int i = 0; i < times; ++i) stage.weight_gradient(part(0, first));
    stage.weight_gradient(part(1, second));
    const ParameterView p = stage.parameters().front();
    const auto* g = static_cast<const std::uint64_t*>(p.gradient);
    return std::vector<std::uint64_t>(g, g + p.count);
  };
  const auto right = gradients(0, 1, 1);
  CHECK(gradients(0, 1, 1) == right);
  CHECK(gradients(1, 0, 1) != right);
  CHECK(gradients(0, 1, 2) != right);
  CHECK(gradients(0, 1, 0) != right);
}

class Throwing : public IntegerWorkload {
 public:
  Stage* stage(StageId s, std::uint32_t replica = 0) override {
    if (s.value != 2) return IntegerWorkload::stage(s, replica);
    bad_.inner = IntegerWorkload::stage(s, replica);
    return &bad_;
  }

 private:
  struct Bad : test::Wrapped {
    void forward(const Part& part, const std::byte* x, std::byte* y) override {
      if (part.microbatch == 3) throw std::runtime_error("the disk is on fire");
      Wrapped::forward(part, x, y);
    }
  };
  Bad bad_;
};

TEST_CASE("an op that fails ends the run, and is named") {
  const Program p = make(test::one_f_one_b(4, 8), 4, 8);
  Throwing throwing;
  const Result<RunReport> report = run(p, throwing, RunOptions{});
  REQUIRE(!report);
  CHECK(report.failure().message == "F(2, 3) on device 2, step 1: the disk is on fire");
}

TEST_CASE("a model larger than the host's memory is refused before anything is made, with its bytes") {
  const Program p = make(test::one_f_one_b(2, 2), 2, 2);
  ModelConfig config;
  config.width = 4096;
  config.blocks = 1024;
  Transformer model(config, std::make_shared<Corpus>(std::vector<std::uint8_t>(100, 'a')));
  RunOptions options;
  options.memory_bound_bytes = UINT64_MAX;
  options.processes_here = 64;
  const Result<RunReport> report = run(p, model, options);
  REQUIRE(!report);
  CHECK(report.failure().message.starts_with("the run needs 3"));
  CHECK(report.failure().message.ends_with(" MiB of memory in each of the 64 ranks of this host, and this host has " + std::to_string(usable_memory() >> 20) + " MiB"));
  options.memory_bound_bytes = 1 << 20;
  CHECK(run(p, model, options).failure().message.ends_with("more than the bound of 1 MiB"));
}

TEST_CASE("an interrupt ends a run that would take an hour") {
  const Program p = make(test::one_f_one_b(4, 4), 4, 4);
  SleepWorkload sleep;
  std::atomic<int> interrupt = 0;
  RunOptions options;
  options.cost_ns = costs(p, 3'600'000'000'000, 0);
  options.interrupt = [&] { return interrupt.load(); };
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    interrupt = 15;
  });
  const Ticks before = now_ns();
  const Result<RunReport> report = run(p, sleep, options);
  later.join();
  REQUIRE(report);
  CHECK(report.value().interrupted);
  CHECK(report.value().signal == 15);
  CHECK(report.value().losses.empty());
  CHECK(now_ns() - before < 5'000'000'000);
}

TEST_CASE("steps are reported one by one, and a callback may end the run by throwing") {
  const Program p = make(test::one_f_one_b(2, 2), 2, 2);
  IntegerWorkload integers;
  RunOptions options;
  options.steps = 4;
  std::vector<std::uint64_t> seen;
  options.on_step = [&](const StepReport& step) { seen.push_back(step.step); };
  REQUIRE(run(p, integers, options));
  CHECK(seen == std::vector<std::uint64_t>{0, 1, 2, 3});
  options.on_step = [](const StepReport&) { throw std::runtime_error("no more"); };
  const Result<RunReport> report = run(p, integers, options);
  REQUIRE(!report);
  CHECK(report.failure().message.find("no more") != std::string::npos);
}

TEST_CASE("a loss that is not finite ends the run") {
  struct Infinite : IntegerWorkload {
    double loss() const override { return std::nan(""); }
  };
  const Program p = make(test::one_f_one_b(2, 2), 2, 2);
  Infinite infinite;
  CHECK(run(p, infinite, RunOptions{}).failure().message ==
        "the loss of step 1 is not finite; try a lower learning rate");
}

TEST_CASE("settings of a run are checked") {
  const Program p = make(test::one_f_one_b(2, 2), 2, 2);
  const auto message = [&](const RunOptions& options, std::uint32_t words) {
    IntegerWorkload integers(words);
    const Result<RunReport> report = run(p, integers, options);
    return report.ok() ? "" : report.failure().message;
  };
  RunOptions options;
  CHECK(message(options, 48).empty());
  options.steps = 0;
  CHECK(message(options, 48) == "steps is 0, but must lie between 1 and 1000000");
  options = {};
  options.cost_ns = {1};
  CHECK(message(options, 48) == "the prices do not fit the program");
  options.cost_ns.assign(p.nodes(), kMaxTicks);
  CHECK(message(options, 48) == "a price is negative, or all together are too long to keep");
  options.cost_ns.assign(p.nodes(), -1);
  CHECK(!message(options, 48).empty());
  options = {};
  options.memory_bound_bytes = 1000;
  CHECK(message(options, 1u << 20).find("more than the bound of 0 MiB") != std::string::npos);
  CHECK(message({}, 1u << 21) == "the integer workload has 1 to 1048576 words a stage, not 2097152");
}

}  // namespace
}  // namespace stave
