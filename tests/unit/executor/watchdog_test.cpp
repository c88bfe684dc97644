// Ranks that live and do not get on: one of them says who waits for whom, and all end with the same cause.
#include "executor/control/watchdog.h"

#include <doctest/doctest.h>

#include <mutex>

#include "meeting.h"

namespace stave {
namespace {

using namespace test;

/// Lanes of a test say what they do by an index into `doings`, of all ranks.
struct Watched {
  explicit Watched(std::uint32_t ranks, std::vector<Position> all) : meeting(ranks), doings(std::move(all)) {
    controls = join_all(meeting);
    for (auto& control : controls)
      dogs.push_back(std::make_unique<Watchdog>(
          *control, 2, [this](std::uint32_t, std::uint64_t what) { return doings[what]; },
          [this](const std::string& text) {
            const std::scoped_lock lock(mutex);
            warnings.push_back(text);
          },
          WatchdogTimes{300'000'000, 20, 300'000'000}));
  }
  ~Watched() {
    dogs.clear();
    leave_all(controls);
  }

  const Meeting meeting;
  const std::vector<Position> doings;
  std::vector<std::unique_ptr<Control>> controls;
  std::mutex mutex;
  std::vector<std::string> warnings;
  std::vector<std::unique_ptr<Watchdog>> dogs;
};

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST_CASE("who waits for whom") {
  const std::vector<Position> line = {{"F(0, 4)"}, {"receives F(0, 3)", 0}, {"receives F(1, 3)", 1}, {}};
  CHECK(describe_waits(line, 2) == "rank 2 waits for rank 1, which waits for rank 0, which is at F(0, 4)");
  CHECK(describe_waits(line, 0) == "rank 0 is at F(0, 4)");
  CHECK(describe_waits(line, 3) == "rank 3 is between two ops");
  const std::vector<Position> circle = {{"sends", 1}, {"receives", 2}, {"receives", 1}};
  CHECK(describe_waits(circle, 0) == "rank 0 waits for rank 1, which waits for rank 2, which waits for rank 1: a circle");
  CHECK(describe_waits({{"x", 0}}, 0) == "rank 0 waits for rank 0: a circle");
  CHECK(describe_waits({{"x", 7}}, 0) == "rank 0 is at x");
}

TEST_CASE("a rank that hangs: one warning with all positions, then one cause on all ranks") {
  Watched watched(3, {{"F(0, 4) on device 0"}, {"receives F(0, 4)", 0}, {"receives F(1, 4)", 1}});
  for (std::uint32_t r = 0; r < 3; ++r) watched.dogs[r]->begin(r % 2, r, 1000);
  for (const auto& control : watched.controls) REQUIRE(wait_for_abort(*control, 5));
  const std::string cause = watched.controls[0]->cause();
  for (const auto& control : watched.controls) CHECK(control->cause() == cause);
  CHECK(cause.find(" has not ended after 0.") != std::string::npos);
  CHECK(cause.find(" is at F(0, 4) on device 0") != std::string::npos);
  const std::scoped_lock lock(watched.mutex);
  REQUIRE(watched.warnings.size() == 1);
  const std::string& warning = watched.warnings[0];
  CHECK(warning.find("; 0.3 s is the most\n") != std::string::npos);
  CHECK(warning.find("\n  rank 0: F(0, 4) on device 0\n  rank 1: receives F(0, 4), waits for rank 0\n"
                     "  rank 2: receives F(1, 4), waits for rank 1") != std::string::npos);
}

TEST_CASE("what was predicted to be long may be; an op that ends after the warning ends nothing") {
  Watched watched(2, {{"B(0, 0)"}, {"F(1, 0)"}});
  // 20 times 100 ms.
  watched.dogs[0]->begin(0, 0, 100'000'000);
  watched.dogs[1]->begin(0, 1, 0);
  sleep_ms(450);
  watched.dogs[1]->end(0);
  sleep_ms(600);
  for (const auto& control : watched.controls) CHECK(!control->is_aborted());
  const std::scoped_lock lock(watched.mutex);
  REQUIRE(watched.warnings.size() == 1);
  CHECK(watched.warnings[0].rfind("rank 1: F(1, 0) has not ended after 0.", 0) == 0);
}

TEST_CASE("the position is that of the lane which has been at the same for longest") {
  Watched watched(1, {{"first"}, {"second"}});
  CHECK(watched.dogs[0]->position().doing.empty());
  watched.dogs[0]->begin(1, 0, 0);
  sleep_ms(2);
  watched.dogs[0]->begin(0, 1, 0);
  CHECK(watched.dogs[0]->position().doing == "first");
  watched.dogs[0]->end(1);
  CHECK(watched.dogs[0]->position().doing == "second");
  watched.dogs[0]->end(0);
  CHECK(watched.dogs[0]->position().doing == "the end of a step, after second");
}

}  // namespace
}  // namespace stave
