// What goes wrong between ranks: they come late, go without a word, fail at once, are rank 0, or are none at all.
#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>

#include "meeting.h"

namespace stave {
namespace {

using namespace test;

double seconds_since(Ticks began) { return static_cast<double>(now_ns() - began) * 1e-9; }

TEST_CASE("ranks may come seconds apart, rank 0 as the last") {
  const Meeting meeting(3);
  std::future<Joined> late = join_soon(meeting.place(0), 3300);
  std::future<Joined> early = join_soon(meeting.place(1));
  std::future<Joined> middle = join_soon(meeting.place(2), 200);
  std::vector<std::unique_ptr<Control>> controls;
  controls.push_back(joined(std::move(late)));
  controls.push_back(joined(std::move(early)));
  controls.push_back(joined(std::move(middle)));
  leave_all(controls);
}

TEST_CASE("a rank that ends without leaving is missed") {
  const Meeting meeting(3);
  std::vector<std::unique_ptr<Control>> controls = join_all(meeting);
  controls[2]->set_position([] { return std::string("F(1, 3)"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  controls.pop_back();
  for (const auto& each : controls) {
    REQUIRE(wait_for_abort(*each, 2));
    CHECK(each->cause() == "rank 2 is gone: it has closed its connection; it was at F(1, 3)");
  }
  leave_all(controls);
}

TEST_CASE("ranks that fail at once all name the same cause") {
  for (int trial = 0; trial < 10; ++trial) {
    const Meeting meeting(4);
    std::vector<std::unique_ptr<Control>> controls = join_all(meeting);
    std::vector<std::string> causes(4);
    std::vector<std::thread> threads;
    for (std::uint32_t r = 0; r < 4; ++r)
      threads.emplace_back([&, r] {
        controls[r]->abort("rank " + std::to_string(r) + " fails");
        causes[r] = controls[r]->cause();
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(causes == std::vector<std::string>(4, causes[0]));
    leave_all(controls);
  }
}

TEST_CASE("where all ranks are, and whom they wait for") {
  const Meeting meeting(3);
  std::vector<std::unique_ptr<Control>> controls = join_all(meeting);
  controls[1]->set_position([] { return Position("receives F(0, 2)", 0); });
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  const Result<Whereabouts> all = controls[2]->whereabouts();
  REQUIRE(all);
  CHECK(all.value().is_first);
  REQUIRE(all.value().ranks.size() == 3);
  CHECK(all.value().ranks[1].doing == "receives F(0, 2)");
  CHECK(all.value().ranks[1].waits_for == 0);
  CHECK(all.value().ranks[0].waits_for == kNobody);
  const Result<Whereabouts> again = controls[0]->whereabouts();
  REQUIRE(again);
  CHECK(!again.value().is_first);
  leave_all(controls);
}

TEST_CASE("on its own host a rank has the address by which other hosts reach rank 0") {
  // An address of this host that is no loopback, found without sending anything.
  Socket probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage elsewhere = {};
  {
    Result<Socket> any = listen_on(0);
    REQUIRE(any);
    socklen_t size = sizeof(elsewhere);
    ::getsockname(any->fd(), reinterpret_cast<sockaddr*>(&elsewhere), &size);
  }
  // 198.51.100.1, of a block that is for documentation (RFC 5737).
  const unsigned char address[4] = {198, 51, 100, 1};
  std::copy(address, address + 4, reinterpret_cast<unsigned char*>(&elsewhere) + 4);
  if (::connect(probe.fd(), reinterpret_cast<const sockaddr*>(&elsewhere), sizeof(sockaddr)) != 0 ||
      is_loopback(local_address(probe))) {
    MESSAGE("skipped: this host has no address but the loopback's");
    return;
  }
  const std::string outward = local_address(probe);
  const Meeting meeting(3);
  RankPlace outer = meeting.place(2);
  outer.host = outward;
  std::future<Joined> others[] = {join_soon(meeting.place(0)), join_soon(meeting.place(1)), join_soon(outer)};
  std::vector<std::unique_ptr<Control>> controls;
  for (std::future<Joined>& each : others) controls.push_back(joined(std::move(each)));
  for (const auto& each : controls) CHECK(each->address() == outward);
  leave_all(controls);
}

TEST_CASE("a gathering of 64 MiB from one rank; one byte more is refused") {
  const Meeting meeting(2);
  std::vector<std::unique_ptr<Control>> controls = join_all(meeting);
  const std::string large(kMostBlob, 'x');
  const Result<std::vector<std::string>> refused = controls[0]->gather(large + "y");
  REQUIRE(!refused);
  CHECK(refused.failure().message == "rank 0 has 67108865 bytes to tell the others; 67108864 is the most");
  auto first = std::async(std::launch::async, [&] { return controls[0]->gather(large); });
  Result<std::vector<std::string>> all = controls[1]->gather("small");
  REQUIRE_MESSAGE(all, all.failure().message);
  CHECK((*all)[0] == large);
  CHECK((*all)[1] == "small");
  REQUIRE(first.get());
  leave_all(controls);
}

TEST_CASE("strangers who say nothing, or a byte at a time, keep no rank out and are gone after 3 s") {
  const Meeting meeting(2);
  std::future<Joined> first = join_soon(meeting.place(0), 0, 20);
  std::vector<Socket> strangers;
  for (int i = 0; i < 60; ++i) {
    Result<Socket> socket = connect_to("127.0.0.1", meeting.port, now_ns() + 1'000'000'000);
    REQUIRE(socket);
    strangers.push_back(std::move(*socket));
  }
  std::unique_ptr<Control> second = joined(join_soon(meeting.place(1)));
  std::unique_ptr<Control> server = joined(std::move(first));
  const Ticks began = now_ns();
  // The length of a frame of 100 bytes, and then its bytes, one by one.
  REQUIRE(::send(strangers[0].fd(), "\x64\0\0", 3, MSG_NOSIGNAL) == 3);
  bool is_open = true;
  while (is_open && seconds_since(began) < 8) {
    is_open = ::send(strangers[0].fd(), "\0", 1, MSG_NOSIGNAL) == 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(!is_open);
  CHECK(seconds_since(began) > 1.5);
  CHECK(!server->is_aborted());
  second->leave();
  server->leave();
  second.reset();
}

TEST_CASE("a host that does not answer is given up at the deadline") {
  // A listener whose queue is full: what comes after it is dropped, as by a silent host.
  Socket full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::listen(full.fd(), 0) == 0);
  std::vector<Socket> waiting;
  for (int i = 0; i < 4; ++i) {
    Result<Socket> socket = connect_to("127.0.0.1", port_of(full), now_ns() + 100'000'000);
    if (!socket) break;
    waiting.push_back(std::move(*socket));
  }
  const Ticks began = now_ns();
  const Result<Socket> socket = connect_to("127.0.0.1", port_of(full), began + 500'000'000);
  REQUIRE(!socket);
  CHECK(seconds_since(began) < 1.5);
}

/// Rank 0 of three is a process that gets `signal`; what the others say, and after how many seconds.
std::string lose_first(int signal, double& seconds) {
  const Meeting meeting(3);
  const pid_t pid = ::fork();
  if (pid == 0) {
    Joined first = Control::join(meeting.place(0), 10);
    if (first) (*first)->set_position([] { return std::string("B(0, 1) on device 0, step 2"); });
    while (first) ::usleep(1000);
    ::_exit(1);
  }
  ::close(meeting.listener);
  std::future<Joined> others[] = {join_soon(meeting.place(1)), join_soon(meeting.place(2))};
  std::unique_ptr<Control> one = joined(std::move(others[0]));
  std::unique_ptr<Control> two = joined(std::move(others[1]));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(pid, signal);
  const Ticks began = now_ns();
  CHECK(wait_for_abort(*one, 8));
  CHECK(wait_for_abort(*two, 8));
  seconds = seconds_since(began);
  CHECK(one->cause() == two->cause());
  const std::string cause = one->cause();
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return cause;
}

TEST_CASE("that rank 0 itself is killed or stopped is found out too") {
  double seconds = 0;
  const std::string killed = lose_first(SIGKILL, seconds);
  CHECK(killed.rfind("rank 0 is gone: ", 0) == 0);
  CHECK(killed.find("; it was at B(0, 1) on device 0, step 2") != std::string::npos);
  CHECK(seconds < 2);
  CHECK(lose_first(SIGSTOP, seconds) ==
        "rank 0 has not been heard of for 3 s; it was at B(0, 1) on device 0, step 2");
  CHECK(seconds < 8);
}

TEST_CASE("a rank whose clock is seconds ahead finds out by how much") {
  const Meeting meeting(2);
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // The clock of a namespace is set before its first process: that is the child's child.
    if (::unshare(CLONE_NEWTIME) != 0) ::_exit(77);
    std::ofstream offsets("/proc/self/timens_offsets");
    offsets << "monotonic 5 250000000\n";
    offsets.close();
    if (!offsets) ::_exit(77);
    if (::fork() == 0) {
      Joined second = Control::join(meeting.place(1), 10);
      const Ticks offset = second ? (*second)->clock_offset_ns() : -1;
      (void)!::write(ends[1], &offset, sizeof(offset));
      if (second) (*second)->leave();
      ::_exit(0);
    }
    ::wait(nullptr);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::future<Joined> joining = join_soon(meeting.place(0), 0, 2);
  Ticks offset = 0;
  const bool is_told = ::read(ends[0], &offset, sizeof(offset)) == sizeof(offset);
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(ends[0]);
  Joined first = joining.get();
  if (first) (*first)->leave();
  if (!is_told) {
    REQUIRE(WEXITSTATUS(status) == 77);
    MESSAGE("skipped: this process may not make a time namespace");
    return;
  }
  CHECK(offset > 5'240'000'000);
  CHECK(offset < 5'260'000'000);
}

}  // namespace
}  // namespace stave
