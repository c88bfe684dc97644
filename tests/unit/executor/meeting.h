// Meeting: where the ranks of a test come together, as threads of this process or as processes of their own.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/clock.h"
#include "executor/control/control.h"

namespace stave::test {

/// Rank 0 listens on a port that nobody else has.
struct Meeting {
  explicit Meeting(std::uint32_t n) : size(n) {
    Result<Socket> made = listen_on(0);
    REQUIRE(made);
    port = port_of(*made);
    listener = ::dup(made->fd());
  }
  RankPlace place(std::uint32_t rank) const {
    RankPlace result;
    result.rank = rank;
    result.size = size;
    result.host = "127.0.0.1";
    result.port = port;
    result.token = "secret";
    if (rank == 0) result.listener = listener;
    return result;
  }
  std::uint32_t size;
  std::uint16_t port = 0;
  int listener = -1;
};

using Joined = Result<std::unique_ptr<Control>>;

inline std::future<Joined> join_soon(const RankPlace& place, int after_ms = 0, int seconds = 10) {
  return std::async(std::launch::async, [=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    return Control::join(place, seconds);
  });
}

inline std::unique_ptr<Control> joined(std::future<Joined> joining) {
  Joined result = joining.get();
  REQUIRE_MESSAGE(result, result.failure().message);
  return std::move(*result);
}

inline std::vector<std::unique_ptr<Control>> join_all(const Meeting& meeting) {
  std::vector<std::future<Joined>> joining;
  for (std::uint32_t r = 0; r < meeting.size; ++r) joining.push_back(join_soon(meeting.place(r)));
  std::vector<std::unique_ptr<Control>> result;
  for (std::future<Joined>& each : joining) result.push_back(joined(std::move(each)));
  return result;
}

inline void leave_all(std::vector<std::unique_ptr<Control>>& controls) {
  for (auto& each : controls) each->leave();
  // The server's last.
  while (!controls.empty()) controls.pop_back();
}

inline bool wait_for_abort(const Control& control, double seconds) {
  const Ticks deadline = now_ns() + static_cast<Ticks>(seconds * 1e9);
  while (!control.is_aborted() && now_ns() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return control.is_aborted();
}

}  // namespace stave::test
