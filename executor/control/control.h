// Control: the control plane as a rank sees it, over TCP and apart from the data. The ranks come together here, tell each
// other small things, share a clock, and learn of one that failed or is gone: then all end, with its cause.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/ticks.h"
#include "executor/control/launcher_variables.h"
#include "executor/control/position.h"
#include "executor/control/server.h"
#include "executor/control/wire.h"

namespace stave {

/// Most bytes that a rank says in one gathering.
inline constexpr std::size_t kMostBlob = std::size_t{1} << 26;

class Control {
 public:
  /// Comes together with all other ranks of `place`, which must say where rank 0 listens; rank 0 listens there, or on
  /// its `listener`. Errors: a port in use, an address that does not resolve, ranks that do not come within `seconds`, a
  /// rank that is taken or another number of ranks, a wrong token.
  static Result<std::unique_ptr<Control>> join(const RankPlace& place, int seconds = 60);
  /// A rank that has not left, and did not end the run, is missed by the others.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }
  /// Of this host, by which the other ranks reach it.
  const std::string& address() const { return address_; }

  /// Every rank says `mine`, at most kMostBlob bytes and 1 GiB together, and gets what all have said, by rank. Called by
  /// one thread at a time, in the same order on all ranks; so it is a barrier too. Waits for as long as all live.
  /// Errors: the run was ended.
  Result<std::vector<std::string>> gather(std::string_view mine);

  /// Ends the run on all ranks; the first cause stays. From any thread; waits for no other rank.
  void abort(const std::string& cause);
  bool is_aborted() const { return is_aborted_.load(std::memory_order_acquire); }
  /// Of several the one that came first to rank 0, the same on all ranks; waits half a second for its word.
  std::string cause() const;

  /// `position` says where this rank is; asked for on a thread of the control plane with every heartbeat, to be told
  /// should the rank be lost or nothing move.
  void set_position(std::function<Position()> position);
  /// Where all ranks were at their last heartbeat. By one thread at a time. Errors: the run was ended; rank 0 is silent.
  Result<Whereabouts> whereabouts();

  /// now_ns() here less that of rank 0; 0 on its own host. Measured anew by sync_clock().
  Ticks clock_offset_ns() const { return offset_ns_.load(std::memory_order_relaxed); }
  /// Of 8 round trips the shortest; nothing if less than a second ago, in which two clocks part by some 0.1 ms at most.
  /// Errors: the run was ended.
  Result<void> sync_clock();

  /// This rank is done: from now on nobody misses it.
  void leave();

 private:
  Control(const RankPlace& place, Socket socket);
  Result<void> say_hello(const RankPlace& place, Ticks deadline);
  void listen();
  void take(const Frame& frame);
  void send(FrameKind kind, std::string_view body);
  void note_abort(const std::string& cause, bool is_final);
  void note_lost(const std::string& why);
  void beat();

  const std::uint32_t rank_;
  const std::uint32_t size_;
  std::unique_ptr<ControlServer> server_;
  Socket socket_;
  std::string address_;
  bool shares_clock_ = false;
  std::atomic<Ticks> offset_ns_ = 0;

  std::mutex send_mutex_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool has_said_hello_ = false;
  bool is_welcome_ = false;
  std::string refusal_;
  bool has_left_ = false;
  std::vector<std::string> gathered_;
  bool has_gathered_ = false;
  Ticks pong_sent_ = 0;
  Ticks pong_at_server_ = 0;
  Ticks pong_arrived_ = 0;
  Ticks synced_ = 0;
  Whereabouts whereabouts_;
  std::string cause_;
  bool is_cause_final_ = false;
  std::string first_rank_doing_;
  std::function<Position()> position_;

  std::atomic<bool> is_aborted_ = false;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace stave
