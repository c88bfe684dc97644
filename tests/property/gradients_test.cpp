// Training under each schedule of the library gives the gradients of a plain sequential run.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/integer.h"
#include "executor/stage/transformer.h"
#include "tests/property/lowered.h"

namespace stave {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<fs::path> library() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(STAVE_SOURCE_DIR) / "schedules"))
    if (entry.path().extension() == ".sched") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 5);
  return files;
}

FreezeRatios ratios_of(const Schedule& schedule) {
  FreezeRatios freeze;
  for (Rational ratio : schedule.costs.freeze) freeze.ratio.push_back(ratio.to_double());
  return freeze;
}

/// Four devices and eight microbatches where a file has such parameters.
std::vector<Argument> arguments_of(const std::string& text) {
  const std::size_t begin = text.find("\nschedule ");
  const std::string header = text.substr(begin, text.find('\n', begin + 1) - begin);
  std::vector<Argument> arguments;
  if (header.find("(P = ") != std::string::npos) arguments.push_back(make_argument("P", 4));
  if (header.find("M = P") != std::string::npos) arguments.push_back(make_argument("M", 4));
  else if (header.find("M = ") != std::string::npos) arguments.push_back(make_argument("M", 8));
  return arguments;
}

void check_gradients(const std::string& text) {
  const Schedule schedule = test::schedule_of(text, arguments_of(text));
  const Program program = test::program_of(schedule, test::table_of(schedule));
  ModelConfig model;
  model.width = 32;
  model.sequence = 24;
  model.rows = 1;
  model.steps = 1;
  std::vector<std::uint8_t> bytes;
  for (char c : read(fs::path(STAVE_SOURCE_DIR) / "docs" / "language.md")) bytes.push_back(static_cast<std::uint8_t>(c));
  const auto corpus = std::make_shared<const Corpus>(std::move(bytes));
  RunOptions options;
  options.clock = Clock::Virtual;

  Transformer trained(model, corpus, ratios_of(schedule));
  Transformer plain(model, corpus, ratios_of(schedule));
  const Result<RunReport> report = run(program, trained, options);
  REQUIRE_MESSAGE(report.ok(), report.failure().message);
  const Partition partition = test::partition_of(program);
  const Result<double> loss = run_reference(plain, partition, 1);
  REQUIRE_MESSAGE(loss.ok(), loss.failure().message);
  const Comparison comparison = compare_gradients(program.table, trained, plain);
  CAPTURE(comparison.worst);
  CAPTURE(comparison.worst_tensor);
  CAPTURE(comparison.must_be_exact);
  CHECK(comparison.tensors > 4);
  CHECK(comparison.agrees);
  CHECK(report.value().losses.at(0) == doctest::Approx(loss.value()).epsilon(1e-6));

  IntegerWorkload whole(48, 1, ratios_of(schedule));
  IntegerWorkload whole_plain(48, 1, ratios_of(schedule));
  REQUIRE(run(program, whole, options).ok());
  REQUIRE(run_reference(whole_plain, partition, 1).ok());
  CHECK(compare_gradients(program.table, whole, whole_plain).agrees);
}

TEST_CASE("gradients of every schedule of the library equal the sequential run's") {
  for (const fs::path& file : library()) {
    CAPTURE(file.filename().string());
    check_gradients(read(file));
  }
}

TEST_CASE("so do they with frozen groups") {
  for (const fs::path& file : library()) {
    CAPTURE(file.filename().string());
    check_gradients(read(file) + "\nfreeze W(s, m) = 0.5 if s < 2 and m mod 2 == 0 else 0\n");
  }
}

/// A file with these lines above the order of its devices.
std::string schedule_with(const std::string& lines, const std::string& order) {
  return "\nschedule made\n" + lines + "\non device d { " + order + " }\n";
}

TEST_CASE("gradients of what the library has not: routes, chains, pairs, sizes") {
  const std::string settings = "devices 3\nstages 3\nmicrobatches 4\n";
  const std::string greedy = "any { B(*, *) } any { F(*, *) }";
  // Stages skipped and in another order.
  check_gradients(schedule_with(settings + "place stage s on device s\n"
                                           "route microbatch m = [0, 2, 1] if m mod 2 == 0 else [1, 2]\n", greedy));
  // Two chains of stages, cut differently, over the same devices in opposite directions.
  check_gradients(schedule_with("devices 2\nstages 4\nmicrobatches 6\n"
                                "place stage s on device (s if s < 2 else 3 - s)\n"
                                "route microbatch m = 0 .. 2 if m mod 2 == 0 else 2 .. 4\n", greedy));
  // Uneven slices, differently by microbatch; microbatches of different sizes.
  check_gradients(schedule_with("devices 3\nstages 3\nmicrobatches 2\nslices [[5, 3, 2], [1, 1, 8]]\n"
                                "place stage s on device s\n",
                                "any { B(*, *, *) } any { F(*, *, *) }"));
  check_gradients(schedule_with("devices 3\nstages 3\nmicrobatches [10, 4, 7]\nplace stage s on device s\n", greedy));
  // Overlapped pairs.
  check_gradients("\nschedule pairs\ndevices 2\nstages 2\nmicrobatches 4\nplace stage s on device s\n"
                  "on device 0 { F(0, 0) F(0, 1) F(0, 2) with B(0, 0) F(0, 3) with B(0, 1) B(0, 2) B(0, 3) }\n"
                  "on device 1 { F(1, 0) F(1, 1) with B(1, 0) F(1, 2) with B(1, 1) F(1, 3) with B(1, 2) B(1, 3) }\n");
}

// Asynchronous 1F1B: an update after every backward, so that a backward's weights are older than the newest.
constexpr const char* kPipeDream =
    "\nschedule pipedream(P = 4, M = 8)"
    "\nop O(s in stages, k in microbatches)  after W(s, k)"
    "\ndevices P"
    "\nstages P"
    "\nmicrobatches M"
    "\nplace stage s on device s"
    "\non device d {"
    "\n  let warmup = min(M, P - 1 - d)"
    "\n  repeat warmup     { F(d, next) }"
    "\n  repeat M - warmup { F(d, next)  B(d, next) O(d, next) }"
    "\n  repeat warmup     { B(d, next) O(d, next) }"
    "\n}"
    "\n";

// PipeDream-2BW: an update every n microbatches, from weights two groups back.
constexpr const char* kTwoVersions =
    "\nschedule twobw(P = 4, M = 12, n = 4)"
    "\nop O(s in stages, k in 0 .. M / n)  after W(s, n * k .. n * (k + 1))"
    "\nF(s, m) receives weights from O(s, m div n - 2)"
    "\ndevices P"
    "\nstages P"
    "\nmicrobatches M"
    "\nplace stage s on device s"
    "\non device d {"
    "\n  let warmup = min(M, P - 1 - d)"
    "\n  repeat warmup     { F(d, next) }"
    "\n  for k in 0 .. M - warmup { F(d, next)  B(d, next) if k mod n == n - 1 { O(d, next) } }"
    "\n  for k in M - warmup .. M { B(d, next) if k mod n == n - 1 { O(d, next) } }"
    "\n}"
    "\n";

// Weights that travel from device to device, while activations stay.
constexpr const char* kTravelling =
    "\nschedule weipipe(P = 2, M = 4)"
    "\nF(s, m) receives weights from F(s, m - 1)"
    "\ndevices P"
    "\nstages P"
    "\nmicrobatches M"
    "\nplace stage s of microbatch m on device m mod P"
    "\non device d { any { B(*, *) } any { F(*, *) } }"
    "\n";

TEST_CASE("updates between ops: the gradients of a sequential run with the same versions of the weights") {
  check_gradients(kPipeDream);
  check_gradients(kTwoVersions);
  check_gradients(kTravelling);
}

TEST_CASE("no more versions are kept than are read, and other versions give other gradients") {
  for (const auto& [text, most] : {std::pair(kPipeDream, 4u), std::pair(kTwoVersions, 2u)}) {
    const Schedule schedule = test::schedule_of(text);
    const Program program = test::program_of(schedule, test::table_of(schedule));
    Partition partition = test::partition_of(program);
    CHECK(*std::max_element(partition.kept.begin(), partition.kept.end()) == most);
    IntegerWorkload whole;
    IntegerWorkload plain;
    RunOptions options;
    options.steps = 3;
    REQUIRE(run(program, whole, options).ok());
    REQUIRE(run_reference(plain, partition, 3).ok());
    CHECK(compare_gradients(program.table, whole, plain).agrees);
    std::fill(partition.reads_version.begin(), partition.reads_version.end(), 0);
    IntegerWorkload stale;
    REQUIRE(run_reference(stale, partition, 3).ok());
    CHECK_FALSE(compare_gradients(program.table, whole, stale).agrees);
  }
}

TEST_CASE("weight gradients in microbatch order must agree to the last bit") {
  const Schedule schedule = test::schedule_of(read(fs::path(STAVE_SOURCE_DIR) / "schedules" / "one_f_one_b.sched"));
  for (bool in_order : accumulates_in_order(test::table_of(schedule))) CHECK(in_order);
}

}  // namespace
}  // namespace stave
