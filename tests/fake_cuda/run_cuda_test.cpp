// Runs of the CUDA executor on the stand-ins, with stages of whole numbers: what every schedule must give is known to the
// last bit, and a wait that is missing changes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "executor/cuda/host_workload.h"
#include "executor/cuda/run_cuda.h"
#include "executor/cuda/transformer.h"
#include "executor/random.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/sleep.h"
#include "executor/stage/transformer.h"
#include "make_program.h"
#include "tests/property/library.h"
#include "tests/property/lowered.h"

namespace stave {
namespace {

constexpr std::uint64_t kSteps = 3;

struct Ran {
  Result<RunReport> report = Failure{"not run"};
  bool agrees = false;
};

Result<RunReport> run_on_lanes(const Program& program, Workload& inner, CudaOptions cuda, RunOptions options) {
  const auto lanes = CudaLanes::make(program.table.devices(), cuda.transport == CudaTransport::Nccl);
  if (!lanes) return lanes.failure();
  HostWorkload workload(inner, lanes.value()->lane_of());
  cuda.slots_on_host = true;
  cuda.enqueue_sum = [&](StageId s, cudaStream_t stream) { workload.enqueue_sum(s, stream); };
  return run_cuda(program, workload, *lanes.value(), options, cuda);
}

Ran train(const Program& program, const CudaOptions& cuda, std::uint32_t words = 16) {
  Ran ran;
  RunOptions options;
  options.steps = kSteps;
  IntegerWorkload trained(words);
  IntegerWorkload plain(words);
  ran.report = run_on_lanes(program, trained, cuda, options);
  if (!ran.report) return ran;
  const Result<double> loss = run_reference(plain, test::partition_of(program), kSteps);
  REQUIRE_MESSAGE(loss, loss.failure().message);
  ran.agrees = compare_gradients(program.table, trained, plain).agrees && ran.report.value().losses.back() == loss.value();
  return ran;
}

void check_exact(const Program& program, const CudaOptions& cuda) {
  const Ran ran = train(program, cuda);
  REQUIRE_MESSAGE(ran.report, ran.report.failure().message);
  CHECK(ran.agrees);
  CHECK(ran.report.value().losses.size() == kSteps);
}

CudaOptions with(CudaTransport transport, bool graph = false, bool serial = false) {
  CudaOptions cuda;
  cuda.transport = transport;
  cuda.graph = graph;
  cuda.serial = serial;
  return cuda;
}

const CudaOptions kEvery[] = {with(CudaTransport::Local), with(CudaTransport::Local, true), with(CudaTransport::Nccl),
                              with(CudaTransport::Nccl, false, true), with(CudaTransport::Nccl, true),
                              with(CudaTransport::Nccl, true, true)};

/// The same program, issued as a naive runtime would: a receive just before its reader, a send just after its maker.
Program without_order_rule(Program program) {
  Rows<NodeId> issue;
  for (std::uint32_t d = 0; d < program.table.devices(); ++d) {
    for (std::uint32_t i = program.table.first[d]; i < program.table.first[d + 1]; ++i) {
      for (std::uint32_t m = 0; m < program.messages.size(); ++m)
        if (program.messages[m].consumer == i) issue.items.push_back(program.node(MessageId(m)));
      issue.items.push_back(NodeId(i));
      for (std::uint32_t m = 0; m < program.messages.size(); ++m)
        if (program.messages[m].producer == i) issue.items.push_back(program.node(MessageId(m)));
    }
    issue.end_row();
  }
  program.issue = std::move(issue);
  return program;
}

Program random_program(std::uint64_t seed) {
  RandomStream random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random.below(n)); };
  const std::uint32_t devices = 2 + below(3);
  const std::uint32_t stages = devices * (1 + below(2));
  const std::uint32_t microbatches = 2 + below(4);
  std::vector<std::uint32_t> place;
  for (std::uint32_t s = 0; s < stages; ++s) place.push_back(s < devices ? s : below(devices));
  return test::make(test::random_order(seed, place, devices, microbatches), stages, microbatches);
}

TEST_CASE("every schedule of the library gives the sequential run's whole numbers, on every transport") {
  for (const std::filesystem::path& file : test::library()) {
    const Schedule schedule = test::schedule_of(test::read(file));
    const Program program = test::program_of(schedule, test::table_of(schedule));
    // The stand-in has a thread for every queue of every GPU.
    if (program.table.devices() > 8) continue;
    CAPTURE(file.filename().string());
    for (const CudaOptions& cuda : kEvery) {
      CAPTURE(static_cast<int>(cuda.transport));
      CAPTURE(cuda.graph);
      CAPTURE(cuda.serial);
      const Result<Plan> plan = make_plan(program, true);
      REQUIRE(plan);
      const bool several = std::ranges::any_of(plan.value().model.kept, [](std::uint32_t kept) { return kept > 1; });
      if (cuda.graph && several) {
        CHECK(train(program, cuda).report.failure().message.find("several versions") != std::string::npos);
      } else {
        check_exact(program, cuda);
      }
    }
  }
}

TEST_CASE("random orders do so under jitter") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    for (const CudaOptions& cuda : kEvery) check_exact(random_program(seed), cuda);
  }
}

TEST_CASE("500 random legal schedules end on one communicator, whatever the hardware queues") {
  CudaOptions cuda = with(CudaTransport::Nccl, false, true);
  cuda.stall_ns = 5'000'000'000;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const Ran ran = train(random_program(seed), cuda, 4);
    REQUIRE_MESSAGE(ran.report, ran.report.failure().message);
    CHECK(ran.agrees);
  }
}

TEST_CASE("without the order rule many of them hang, and the report says where") {
  CudaOptions cuda = with(CudaTransport::Nccl, false, true);
  cuda.stall_ns = 150'000'000;
  int hangs = 0;
  int swapped = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Ran ran = train(without_order_rule(random_program(seed)), cuda, 4);
    // Sends and receives match by order alone: one that ends may have swapped its data.
    if (ran.report) {
      swapped += ran.agrees ? 0 : 1;
      continue;
    }
    ++hangs;
    CAPTURE(ran.report.failure().message);
    CHECK(ran.report.failure().message.find("no lane went on for") != std::string::npos);
    CHECK(ran.report.failure().message.find(": the ") != std::string::npos);
  }
  MESSAGE(hangs, " of 20 hung, ", swapped, " of the others have swapped messages");
  CHECK(hangs > 5);
}

TEST_CASE("times are those of a step: waits and messages in order") {
  const Program program = test::make(test::one_f_one_b(3, 4), 3, 4);
  for (CudaTransport transport : {CudaTransport::Local, CudaTransport::Nccl}) {
    const Ran ran = train(program, with(transport));
    REQUIRE_MESSAGE(ran.report, ran.report.failure().message);
    const Timeline& timeline = ran.report.value().timeline;
    REQUIRE(timeline.start.size() == program.nodes());
    CHECK(ran.report.value().makespan_ns > 0);
    for (std::uint32_t n = 0; n < program.nodes(); ++n) {
      CHECK(timeline.end[n] >= timeline.start[n]);
      // The events of one GPU have one clock, rounded to half a microsecond; clocks of several ranks are as far apart as a
      // busy host makes them, which no bound holds for.
      if (transport != CudaTransport::Local) continue;
      for (NodeId before : program.waits[n]) CHECK(timeline.start[n] + 1'000 >= timeline.end[before.value]);
    }
  }
}

TEST_CASE("what is not computed lasts its cost, and messages lie beside it") {
  const Program program = test::make(test::one_f_one_b(2, 4), 2, 4);
  RunOptions options;
  options.steps = 2;
  options.cost_ns.assign(program.nodes(), 2'000'000);
  SleepWorkload sleeps;
  const Result<RunReport> report = run_on_lanes(program, sleeps, with(CudaTransport::Local), options);
  REQUIRE_MESSAGE(report, report.failure().message);
  // 16 ops on the longer way, and the messages at its ends.
  CHECK(report.value().makespan_ns >= 16'000'000);
}

TEST_CASE("the language model under a schedule loses as it does on the CPU, on every transport") {
  ModelConfig model;
  model.width = 16;
  model.heads = 2;
  model.sequence = 8;
  model.steps = kSteps;
  std::vector<std::uint8_t> bytes;
  RandomStream random(7);
  for (int i = 0; i < 4000; ++i) bytes.push_back(static_cast<std::uint8_t>('a' + random.below(26)));
  const auto corpus = std::make_shared<const Corpus>(std::move(bytes));
  const Program program = test::make(test::split_1f1b(4, 4, false), 4, 4);
  RunOptions options;
  options.steps = kSteps;
  Transformer plain(model, corpus);
  const Result<RunReport> expected = run(program, plain, options);
  REQUIRE_MESSAGE(expected, expected.failure().message);
  for (const CudaOptions& cuda : kEvery) {
    CAPTURE(static_cast<int>(cuda.transport));
    CAPTURE(cuda.graph);
    const auto lanes = CudaLanes::make(4, cuda.transport == CudaTransport::Nccl);
    REQUIRE(lanes);
    CudaTransformer trained(model, corpus, {}, lanes.value()->lane_of());
    const Result<RunReport> report = run_cuda(program, trained, *lanes.value(), options, cuda);
    REQUIRE_MESSAGE(report, report.failure().message);
    REQUIRE(report.value().losses.size() == kSteps);
    for (std::size_t step = 0; step < kSteps; ++step)
      CHECK(std::abs(report.value().losses[step] - expected.value().losses[step]) < 1e-5);
  }
}

TEST_CASE("what NCCL reads from the environment is set, unless the user has") {
  const Program program = test::make(test::one_f_one_b(2, 2), 2, 2);
  const auto value_of = [](const char* name) { return std::string(std::getenv(name) == nullptr ? "" : std::getenv(name)); };
  unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  unsetenv("NCCL_GRAPH_MIXING_SUPPORT");
  check_exact(program, with(CudaTransport::Nccl));
  CHECK(value_of("NCCL_LAUNCH_ORDER_IMPLICIT").empty());
  CHECK(value_of("NCCL_GRAPH_MIXING_SUPPORT").empty());
  check_exact(program, with(CudaTransport::Nccl, true, true));
  CHECK(value_of("NCCL_LAUNCH_ORDER_IMPLICIT") == "1");
  CHECK(value_of("NCCL_GRAPH_MIXING_SUPPORT") == "0");
  CHECK(!value_of("CUDA_DEVICE_MAX_CONNECTIONS").empty());
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
  check_exact(program, with(CudaTransport::Nccl, false, true));
  CHECK(value_of("NCCL_LAUNCH_ORDER_IMPLICIT") == "0");
}

TEST_CASE("an asynchronous error of NCCL ends the run, with what each lane is at") {
  if (std::getenv("FAKE_NCCL_FAIL_AFTER") == nullptr) {
    MESSAGE("skipped: no error is injected");
    return;
  }
  const Ran ran = train(test::make(test::one_f_one_b(4, 8), 4, 8), with(CudaTransport::Nccl));
  REQUIRE(!ran.report);
  CAPTURE(ran.report.failure().message);
  CHECK(ran.report.failure().message.find("remote process exited") != std::string::npos);
  CHECK(ran.report.failure().message.find("they are at") != std::string::npos);
}

TEST_CASE("what a run on GPUs does not do is refused") {
  const Program program = test::make(test::one_f_one_b(2, 2), 2, 2);
  IntegerWorkload workload(4);
  RunOptions options;
  options.clock = Clock::Virtual;
  CHECK(run_on_lanes(program, workload, {}, options).failure().message.find("wall clock") != std::string::npos);
  options.clock = Clock::Wall;
  options.measures_norm = true;
  CHECK(run_on_lanes(program, workload, {}, options).failure().message.find("norm") != std::string::npos);
  CHECK(!CudaLanes::make(2, false, {}, 99));
}

}  // namespace
}  // namespace stave
