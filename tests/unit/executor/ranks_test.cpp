// Runs over ranks that are threads of this process, connected by Gloo or by a transport that can be disturbed.
#include "executor/ranks/ranks.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>

#include "executor/checkpoint.h"
#include "executor/plan.h"
#include "executor/reference.h"
#include "executor/replicate.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/transformer.h"
#include "make_program.h"

namespace stave {
namespace {

/// What all ranks of a test share: messages on their way.
struct Network {
  struct Parcel {
    MessageHeader header;
    std::vector<std::byte> data;
  };
  std::mutex mutex;
  std::condition_variable changed;
  // By channel and receiver.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Parcel>> under_way;
  /// Changes a message before it goes.
  std::function<void(Parcel&)> disturb;
};

class NetworkTransport : public Transport {
 public:
  NetworkTransport(Network& network, std::uint32_t rank) : network_(network), rank_(rank) {}

  std::string send(Channel channel, const MessageHeader& header, std::span<const std::byte> data) override {
    const std::scoped_lock lock(network_.mutex);
    Network::Parcel parcel{header, {data.begin(), data.end()}};
    if (network_.disturb) network_.disturb(parcel);
    network_.under_way[{channel.number, channel.peer}].push_back(std::move(parcel));
    network_.changed.notify_all();
    return "";
  }

  std::string receive(Channel channel, MessageHeader& header, std::span<std::byte> data) override {
    std::unique_lock lock(network_.mutex);
    std::deque<Network::Parcel>& queue = network_.under_way[{channel.number, rank_}];
    network_.changed.wait(lock, [&] { return !queue.empty() || canceled_; });
    if (canceled_) return "canceled";
    header = queue.front().header;
    if (queue.front().data.size() == data.size()) std::ranges::copy(queue.front().data, data.begin());
    queue.pop_front();
    return "";
  }

  void cancel() override {
    const std::scoped_lock lock(network_.mutex);
    canceled_ = true;
    network_.changed.notify_all();
  }

  void close() override {}

 private:
  Network& network_;
  const std::uint32_t rank_;
  bool canceled_ = false;
};

struct Outcome {
  Result<RunReport> report = Failure{"not run"};
  Comparison comparison;
};

using MakeWorkload = std::function<std::unique_ptr<Workload>()>;

/// Runs `program` with a rank a device, each with a workload of its own; `adjust` may change the options of each rank.
std::vector<Outcome> run_ranks(
    const Program& program, Network& network, std::uint64_t steps = 2,
    const MakeWorkload& make_workload = [] { return std::make_unique<IntegerWorkload>(); },
    const std::function<void(std::uint32_t, RunOptions&)>& adjust = {}) {
  const std::uint32_t size = program.table.devices();
  Result<Socket> listener = listen_on(0);
  REQUIRE(listener);
  const std::uint16_t port = port_of(*listener);
  const int fd = ::dup(listener->fd());
  std::vector<std::future<Outcome>> running;
  for (std::uint32_t r = 0; r < size; ++r)
    running.push_back(std::async(std::launch::async, [&, r] {
      RankPlace place;
      place.rank = r;
      place.size = size;
      place.host = "127.0.0.1";
      place.port = port;
      if (r == 0) place.listener = fd;
      Outcome outcome;
      Result<std::unique_ptr<Control>> control = Control::join(place, 10);
      if (!control) {
        outcome.report = control.failure();
        return outcome;
      }
      NetworkTransport transport(network, r);
      const Ranks ranks{**control, &transport, {}};
      const std::unique_ptr<Workload> workload = make_workload();
      RunOptions options;
      options.clock = Clock::Virtual;
      options.steps = steps;
      options.ranks = &ranks;
      options.plan_hash = 17;
      if (adjust) adjust(r, options);
      outcome.report = run(program, *workload, options);
      if (!outcome.report) {
        (*control)->abort(outcome.report.failure().message);
        return outcome;
      }
      if (outcome.report->interrupted) return outcome;
      const std::unique_ptr<Workload> reference = make_workload();
      Result<Plan> plan = make_plan(program, true);
      REQUIRE(plan);
      REQUIRE(run_reference(*reference, plan->model, steps));
      outcome.comparison = compare_gradients(program.table, *workload, *reference);
      REQUIRE(share_comparison(ranks, outcome.comparison));
      return outcome;
    }));
  std::vector<Outcome> outcomes;
  for (auto& each : running) outcomes.push_back(each.get());
  return outcomes;
}

TEST_CASE("ranks give the result of one process, and all have the whole report") {
  std::vector<Program> programs = {test::make(test::one_f_one_b(4, 6), 4, 6),
                                   test::make(test::split_1f1b(3, 5, true), 3, 5)};
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    programs.push_back(test::make(test::random_order(seed, {0, 1, 2, 1, 0}, 3, 4), 5, 4));
  for (const Program& program : programs) {
    IntegerWorkload alone;
    RunOptions options;
    options.clock = Clock::Virtual;
    options.steps = 2;
    const Result<RunReport> whole = run(program, alone, options);
    REQUIRE(whole);
    Network network;
    for (const Outcome& outcome : run_ranks(program, network)) {
      REQUIRE_MESSAGE(outcome.report, outcome.report.failure().message);
      CHECK(outcome.comparison.agrees);
      CHECK(outcome.comparison.exact == outcome.comparison.tensors);
      const Timeline& timeline = outcome.report.value().timeline;
      REQUIRE(timeline.end.size() == program.nodes());
      for (std::uint32_t n = 0; n < program.table.size(); ++n) CHECK(timeline.end[n] > timeline.start[n]);
      for (std::uint32_t m = 0; m < program.messages.size(); ++m) {
        const NodeId node = program.node(MessageId(m));
        CHECK(timeline.start[node.value] >= timeline.end[program.messages[m].producer]);
        CHECK(timeline.start[program.messages[m].consumer] >= timeline.end[node.value]);
      }
    }
  }
}

TEST_CASE("replicas on several ranks are summed") {
  test::Order order = {{{'F', 0, 0}, {'B', 0, 0}, {'F', 0, 2}, {'B', 0, 2}}, {{'F', 0, 1}, {'B', 0, 1}}};
  const Program program = test::make(order, 1, 3);
  Network network;
  for (const Outcome& outcome : run_ranks(program, network)) {
    REQUIRE_MESSAGE(outcome.report, outcome.report.failure().message);
    CHECK(outcome.comparison.exact == outcome.comparison.tensors);
    CHECK(outcome.comparison.tensors == 2);
  }
}

TEST_CASE("tied embeddings over ranks train as in one process") {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 3000; ++i) bytes.push_back(static_cast<std::uint8_t>('a' + i * i % 23));
  const auto corpus = std::make_shared<const Corpus>(bytes);
  ModelConfig config;
  config.width = 16;
  config.heads = 2;
  config.sequence = 8;
  config.steps = 3;
  config.blocks = 4;
  config.tied = true;
  const auto make = [&] { return std::make_unique<Transformer>(config, corpus); };
  const Result<Program> copies = replicate(test::make(test::one_f_one_b(2, 2), 2, 2), 2);
  REQUIRE(copies);
  for (const Program& program :
       {test::make(test::split_1f1b(3, 4, false), 3, 4), test::make(test::random_order(3, {0, 1, 1, 0}, 2, 4), 4, 4),
        copies.value()}) {
    const std::unique_ptr<Workload> alone = make();
    RunOptions options;
    options.clock = Clock::Virtual;
    options.steps = 3;
    options.measures_norm = true;
    options.clip_norm = 0.5;
    std::vector<double> norms;
    options.on_step = [&](const StepReport& step) { norms.push_back(step.gradient_norm); };
    const Result<RunReport> whole = run(program, *alone, options);
    REQUIRE_MESSAGE(whole, whole.failure().message);
    Network network;
    std::vector<double> over_ranks;
    const auto adjust = [&](std::uint32_t rank, RunOptions& mine) {
      mine.measures_norm = true;
      mine.clip_norm = 0.5;
      if (rank == 0) mine.on_step = [&](const StepReport& step) { over_ranks.push_back(step.gradient_norm); };
    };
    for (const Outcome& outcome : run_ranks(program, network, 3, make, adjust)) {
      REQUIRE_MESSAGE(outcome.report, outcome.report.failure().message);
      // Those of replicas are added by rank.
      const std::vector<double>& losses = outcome.report.value().losses;
      REQUIRE(losses.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) CHECK(losses[i] == doctest::Approx(whole.value().losses[i]).epsilon(1e-12));
    }
    CHECK(over_ranks == norms);
  }
}

TEST_CASE("an interrupt of one rank ends all of them after the same step, with a checkpoint") {
  const Program program = test::make(test::one_f_one_b(3, 4), 3, 4);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("stave_ranks_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  Network network;
  std::atomic<int> interrupt = 0;
  const auto adjust = [&](std::uint32_t rank, RunOptions& options) {
    options.checkpoints = folder;
    options.checkpoint_every = 1000;
    if (rank != 1) return;
    options.interrupt = [&] { return interrupt.load(); };
    options.on_step = [&](const StepReport& step) {
      if (step.step == 2) interrupt = 15;
    };
  };
  const auto make = [] { return std::make_unique<IntegerWorkload>(); };
  for (const Outcome& outcome : run_ranks(program, network, 100000, make, adjust)) {
    REQUIRE_MESSAGE(outcome.report, outcome.report.failure().message);
    CHECK(outcome.report.value().interrupted);
    CHECK(outcome.report.value().signal == 15);
    CHECK(outcome.report.value().losses.size() == 4);
  }
  CHECK(last_checkpoint(folder) == 4);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a message that is not what is due ends all ranks, with what it was") {
  const Program program = test::make(test::one_f_one_b(2, 3), 2, 3);
  const auto first_failure = [&](const std::function<void(Network::Parcel&)>& disturb) {
    Network network;
    int sent = 0;
    network.disturb = [&](Network::Parcel& parcel) {
      if (++sent == 2) disturb(parcel);
    };
    std::string result;
    for (const Outcome& outcome : run_ranks(program, network, 1)) {
      REQUIRE(!outcome.report);
      if (outcome.report.failure().message.find("due") != std::string::npos ||
          outcome.report.failure().message.find("belongs") != std::string::npos)
        result = outcome.report.failure().message;
    }
    return result;
  };
  CHECK(first_failure([](Network::Parcel& p) { p.header.step += 1; }).find("of step 2") != std::string::npos);
  CHECK(first_failure([](Network::Parcel& p) { p.header.bytes -= 8; }).find("(376 bytes) arrived") != std::string::npos);
  CHECK(first_failure([](Network::Parcel& p) { p.header.op = 1u << 30; }).find("another program arrived, but") !=
        std::string::npos);
  CHECK(first_failure([](Network::Parcel& p) { p.header.plan = 3; }).find("belongs to another program") !=
        std::string::npos);
}

TEST_CASE("as many ranks as devices") {
  const Program program = test::make(test::one_f_one_b(2, 3), 2, 3);
  RankPlace place;
  place.size = 1;
  Result<std::unique_ptr<Control>> control = Control::join(place, 5);
  REQUIRE(control);
  Network network;
  NetworkTransport transport(network, 0);
  const Ranks ranks{**control, &transport, {}};
  IntegerWorkload workload;
  RunOptions options;
  options.ranks = &ranks;
  const Result<RunReport> report = run(program, workload, options);
  REQUIRE(!report);
  CHECK(report.failure().message == "the schedule has 2 devices, one a rank, but there is 1 rank");
}

}  // namespace
}  // namespace stave
