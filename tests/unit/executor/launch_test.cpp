// Ranks that are started on this host: how they end is how the job ends, and nothing stays behind.
#include "executor/control/launch.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "executor/clock.h"
#include "executor/control/control.h"

namespace stave {
namespace {

/// What this process says on standard error while `run` runs.
template <class Run>
std::string said(const Run& run) {
  std::FILE* file = std::tmpfile();
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  run();
  std::fflush(stderr);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  std::rewind(file);
  std::string result;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) result.push_back(static_cast<char>(c));
  std::fclose(file);
  return result;
}

/// Starts this very program three times, to run the test case below alone, and gives the status of the job.
int launch(const std::string& way, const std::function<int()>& interrupt = [] { return 0; }) {
  constexpr Ticks kGraceNs = 500'000'000;
  ::setenv("STAVE_TEST_WAY", way.c_str(), 1);
  const Result<int> status =
      launch_ranks(3, {"test_executor", "--no-intro", "--no-skip", "--test-case=a rank that was launched"}, interrupt,
                   kGraceNs);
  REQUIRE_MESSAGE(status, status.failure().message);
  // No zombies.
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
  return status.value();
}

/// Not a test: what a rank does that the tests start.
TEST_CASE("a rank that was launched" * doctest::skip()) {
  // Not doctest's, which reports it.
  ::signal(SIGTERM, SIG_DFL);
  const std::string way = std::getenv("STAVE_TEST_WAY");
  const Result<std::optional<RankPlace>> place = find_place(environment());
  if (!place || !place.value()) ::_exit(90);
  const RankPlace& mine = *place.value();
  if (mine.local_size != 3 || mine.local_rank != mine.rank) ::_exit(91);
  Result<std::unique_ptr<Control>> control = Control::join(mine, 10);
  if (!control) ::_exit(92);
  const Result<std::vector<std::string>> all = (*control)->gather("x");
  if (!all || all.value().size() != 3) ::_exit(93);
  const bool is_it = mine.rank == 2;
  if (way == "well" && is_it) std::fprintf(stderr, "one\ntwo without an end");
  if (way == "status" && is_it) std::exit(5);
  if (way == "killed" && is_it) ::raise(SIGKILL);
  if (way == "stopped" && is_it) ::raise(SIGSTOP);
  if (way == "interrupted")
    for (int i = 0; i < 10000; ++i) ::usleep(1000);
  if (way != "well" && !is_it)
    while (!(*control)->is_aborted()) ::usleep(1000);
  if (way != "well" && !is_it) ::_exit(2);
  (*control)->leave();
  control = Failure{""};
  std::fflush(stderr);
  ::_exit(0);
}

TEST_CASE("ranks that end well; what they say is passed on behind their number") {
  int status = -1;
  const std::string text = said([&] { status = launch("well"); });
  CHECK(status == 0);
  CHECK(text == "rank 2: one\nrank 2: two without an end\n");
}

TEST_CASE("the worst exit status is the job's") {
  int status = -1;
  (void)said([&] { status = launch("status"); });
  CHECK(status == 5);
}

TEST_CASE("a rank that a signal ends is named, and makes the status 2") {
  int status = -1;
  const std::string text = said([&] { status = launch("killed"); });
  CHECK(status == 2);
  CHECK(text.find("stave: rank 2 was ended by signal 9 (Killed)\n") != std::string::npos);
}

TEST_CASE("a rank that is stopped does not keep the job for ever") {
  const Ticks began = now_ns();
  int status = -1;
  const std::string text = said([&] { status = launch("stopped"); });
  CHECK(status == 2);
  CHECK(now_ns() - began < 6'000'000'000);
  CHECK(text.find("stave: rank 2 was ended by signal 9 (Killed)\n") != std::string::npos);
}

TEST_CASE("an interrupt goes to all ranks") {
  const Ticks began = now_ns();
  int status = -1;
  const std::string text =
      said([&] { status = launch("interrupted", [&] { return now_ns() - began > 700'000'000 ? SIGTERM : 0; }); });
  CHECK(status == 2);
  CHECK(now_ns() - began < 8'000'000'000);
  for (const char* rank : {"rank 0", "rank 1", "rank 2"})
    CHECK(text.find(std::string(rank) + " was ended by signal 15 (Terminated)") != std::string::npos);
}

}  // namespace
}  // namespace stave
