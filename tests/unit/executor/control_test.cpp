// The control plane, its ranks being threads of this process, or processes that are killed and stopped.
#include "executor/control/control.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>

#include "meeting.h"

namespace stave {
namespace {

using namespace test;

TEST_CASE("what every rank says all ranks hear, in order of ranks") {
  const Meeting meeting(16);
  std::vector<std::unique_ptr<Control>> controls = join_all(meeting);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::uint32_t r = 0; r < 16; ++r)
    threads.emplace_back([&, r] {
      for (int round = 0; round < 20; ++round) {
        const std::string mine = std::to_string(r * 100 + round) + std::string(round == 7 ? 200000 : 0, 'x');
        Result<std::vector<std::string>> all = controls[r]->gather(mine);
        if (!all || all->size() != 16) {
          ++wrong;
          return;
        }
        for (std::uint32_t s = 0; s < 16; ++s)
          wrong += std::stoul((*all)[s]) != s * 100 + round || ((*all)[s].size() > 9) != (round == 7);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(controls[3]->clock_offset_ns() == 0);
  leave_all(controls);
}

TEST_CASE("the first cause of an end is told to all, and a gathering under way ends") {
  const Meeting meeting(3);
  std::vector<std::unique_ptr<Control>> controls = join_all(meeting);
  auto waiting = std::async(std::launch::async, [&] { return controls[0]->gather("here"); });
  controls[2]->abort("rank 2: its disk is full");
  const Result<std::vector<std::string>> ended = waiting.get();
  REQUIRE(!ended);
  CHECK(ended.failure().message == "rank 2: its disk is full");
  REQUIRE(wait_for_abort(*controls[1], 2));
  controls[1]->abort("rank 1: later");
  CHECK(controls[1]->cause() == "rank 2: its disk is full");
  leave_all(controls);
}

TEST_CASE("a rank that is taken, of another number of ranks, or with another token is refused, and harms nobody") {
  const Meeting meeting(2);
  std::vector<std::unique_ptr<Control>> controls = join_all(meeting);
  RankPlace wrong = meeting.place(1);
  Joined twice = Control::join(wrong, 2);
  REQUIRE(!twice);
  CHECK(twice.failure().message == "rank 1 is not let in: rank 1 is taken by another process");
  wrong.size = 3;
  Joined other = Control::join(wrong, 2);
  REQUIRE(!other);
  CHECK(other.failure().message == "rank 1 is not let in: rank 0 knows of 2 ranks; this one is rank 1 of 3");
  wrong = meeting.place(1);
  wrong.token = "guess";
  Joined stranger = Control::join(wrong, 2);
  REQUIRE(!stranger);
  CHECK(stranger.failure().message ==
        "rank 1 is not let in: rank 0 has closed the connection: its token (STAVE_TOKEN) is another one, or it is not "
        "stave");
  // Noise of every kind, huge lengths among it.
  for (const std::string& noise : {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100000, '\xff'),
                                   std::string("\x01\x00\x00\x00\x00", 5), std::string("\x00\x00\x00\x00", 4)}) {
    Result<Socket> socket = connect_to("127.0.0.1", meeting.port, now_ns() + 1'000'000'000);
    REQUIRE(socket);
    (void)!::send(socket->fd(), noise.data(), noise.size(), MSG_NOSIGNAL);
  }
  auto first = std::async(std::launch::async, [&] { return controls[0]->gather("a"); });
  Result<std::vector<std::string>> all = controls[1]->gather("b");
  REQUIRE(all);
  CHECK(*all == std::vector<std::string>{"a", "b"});
  REQUIRE(first.get());
  leave_all(controls);
}

TEST_CASE("ranks that do not come are named") {
  const Meeting meeting(4);
  auto second = std::async(std::launch::async, [&] { return Control::join(meeting.place(2), 1); });
  Joined first = Control::join(meeting.place(0), 1);
  REQUIRE(!first);
  CHECK(first.failure().message == "rank 1, 3 did not come: 2 of 4 ranks are here");
  CHECK(!second.get());
}

TEST_CASE("an address that does not resolve, a port in use") {
  RankPlace place;
  place.rank = 1;
  place.size = 2;
  place.host = "no-such-host.invalid";
  place.port = 1;
  Joined joined = Control::join(place, 1);
  REQUIRE(!joined);
  CHECK(joined.failure().message.rfind("the address of rank 0, no-such-host.invalid, cannot be found: ", 0) == 0);
  Result<Socket> taken = listen_on(0);
  REQUIRE(taken);
  const Result<Socket> again = listen_on(port_of(*taken));
  REQUIRE(!again);
  CHECK(again.failure().message ==
        "rank 0 cannot listen on port " + std::to_string(port_of(*taken)) + ": Address already in use");
}

/// Rank 1 of two is a process that gets `signal`; how rank 0 hears of it, and after how many seconds.
std::string lose(int signal, double& seconds) {
  const Meeting meeting(2);
  const pid_t pid = ::fork();
  if (pid == 0) {
    Joined joined = Control::join(meeting.place(1), 10);
    if (joined) (*joined)->set_position([] { return std::string("F(1, 3) on device 1, step 4"); });
    while (joined) ::usleep(1000);
    ::_exit(1);
  }
  Joined first = Control::join(meeting.place(0), 10);
  REQUIRE_MESSAGE(first, first.failure().message);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(pid, signal);
  const Ticks began = now_ns();
  CHECK(wait_for_abort(**first, 8));
  seconds = static_cast<double>(now_ns() - began) * 1e-9;
  const std::string cause = (*first)->cause();
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return cause;
}

TEST_CASE("a killed rank is missed at once, a stopped one after three seconds; its last op is told") {
  double seconds = 0;
  CHECK(lose(SIGKILL, seconds) ==
        "rank 1 is gone: it has closed its connection; it was at F(1, 3) on device 1, step 4");
  CHECK(seconds < 2);
  CHECK(lose(SIGSTOP, seconds) == "rank 1 has not been heard of for 3 s; it was at F(1, 3) on device 1, step 4");
  CHECK(seconds > 2);
  CHECK(seconds < 8);
}

}  // namespace
}  // namespace stave
