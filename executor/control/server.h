// The server of the control plane, on a thread of rank 0's process: it lets the ranks in, passes on what they have to
// say, and finds out which of them is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "executor/control/position.h"
#include "executor/control/wire.h"

namespace stave {

/// A rank that is not heard of for so long is given up; each end says something this often.
inline constexpr Ticks kSilenceNs = 3'000'000'000;
inline constexpr Ticks kBeatNs = 100'000'000;

class ControlServer {
 public:
  /// Waits for `size` ranks that know `token`, up to `join_deadline`, and then for what they say, until all have left.
  ControlServer(Socket listener, std::uint32_t size, std::string token, Ticks join_deadline);
  /// Ends once all ranks have left, or after `kSilenceNs`; those that are still there then see it go.
  ~ControlServer();

 private:
  struct Peer {
    Socket socket;
    FrameReader reader;
    Outbox out;
    /// Not yet known: kNobody.
    std::uint32_t rank = kNobody;
    /// Of a stranger, when it came.
    Ticks heard = 0;
    Position position;
    bool has_left = false;
    /// Given up: nobody waits for it to leave.
    bool is_lost = false;
    bool is_closed = false;
  };

  void serve();
  void accept_peers();
  void read_from(Peer& peer);
  void write_to(Peer& peer);
  void take(Peer& peer, const Frame& frame);
  void let_in(Peer& peer, const std::string& hello);
  void welcome_all();
  void gather(Peer& peer, std::string blob);
  void tell_positions(Peer& peer);
  void send(Peer& peer, FrameKind kind, std::string_view body);
  void send_all(FrameKind kind, std::string_view body);
  void lose(Peer& peer, const std::string& why);
  void abort(const std::string& cause);
  void look_around();
  std::uint32_t known() const;
  std::string missing() const;

  Socket listener_;
  const std::uint32_t size_;
  const std::string token_;
  const Ticks join_deadline_;
  const std::string boot_;
  std::vector<Peer> peers_;
  bool is_complete_ = false;
  bool is_aborted_ = false;
  /// No rank is there that has not left.
  std::atomic<bool> is_empty_ = true;
  /// By rank: what it has said in the gathering under way.
  std::vector<std::string> blobs_;
  std::vector<std::uint8_t> has_said_;
  Ticks last_beat_ = 0;
  Ticks last_round_ = 0;
  Ticks last_asked_ = 0;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

/// "; it was at F(1, 3)", for a rank that is lost; empty if that is not known.
std::string last_seen_at(const std::string& doing);

/// What a hello begins with.
inline constexpr std::uint64_t kControlMagic = 0x7374'6176'6563'7470;
inline constexpr std::uint64_t kControlVersion = 1;

}  // namespace stave
