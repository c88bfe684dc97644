#include "executor/control/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "executor/clock.h"
#include "executor/control/launcher_variables.h"

namespace stave {

namespace {

/// Somebody who connects has so long to say who they are.
constexpr Ticks kHelloNs = 3'000'000'000;
/// What makes one rank ask where all are makes others ask within this time.
constexpr Ticks kAskedNs = 5'000'000'000;
/// Connections at once beyond those of ranks.
constexpr std::size_t kMostStrangers = 64;
constexpr int kPollMs = 50;
constexpr std::size_t kReadBytes = std::size_t{1} << 16;
/// So much of one is read at most before the others have their turn.
constexpr int kReadsAtOnce = 16;
/// Most bytes that all ranks say together in one gathering: what they are told must fit in a frame.
constexpr std::size_t kMostTogether = kMostFrame - 16 * std::size_t{kMostRanks};

}  // namespace

std::string last_seen_at(const std::string& doing) { return doing.empty() ? "" : "; it was at " + doing; }

ControlServer::ControlServer(Socket listener, std::uint32_t size, std::string token, Ticks join_deadline)
    : listener_(std::move(listener)),
      size_(size),
      token_(std::move(token)),
      join_deadline_(join_deadline),
      boot_(boot_of_host()),
      blobs_(size),
      has_said_(size, 0) {
  ::fcntl(listener_.fd(), F_SETFL, O_NONBLOCK);
  // Whoever made it may have handed it down.
  ::fcntl(listener_.fd(), F_SETFD, FD_CLOEXEC);
  thread_ = std::thread([this] { serve(); });
}

ControlServer::~ControlServer() {
  const Ticks deadline = now_ns() + kSilenceNs;
  while (!is_empty_ && now_ns() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ending_ = true;
  thread_.join();
}

void ControlServer::serve() {
  while (!ending_) {
    // Where there is no room for one more nobody is let in, and poll() need not say that somebody is there.
    const bool has_room = peers_.size() < size_ + kMostStrangers;
    std::vector<pollfd> polled = {{listener_.fd(), static_cast<short>(has_room ? POLLIN : 0), 0}};
    for (const Peer& peer : peers_)
      polled.push_back({peer.socket.fd(), static_cast<short>(POLLIN | (peer.out.empty() ? 0 : POLLOUT)), 0});
    ::poll(polled.data(), polled.size(), kPollMs);
    for (std::size_t i = 0; i + 1 < polled.size(); ++i) {
      Peer& peer = peers_[i];
      if (polled[i + 1].revents & POLLOUT) write_to(peer);
      if (!peer.is_closed && polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) read_from(peer);
    }
    if (polled[0].revents & POLLIN) accept_peers();
    look_around();
    std::erase_if(peers_, [](const Peer& peer) { return peer.is_closed; });
    is_empty_ = std::ranges::all_of(peers_, [](const Peer& p) { return p.rank == kNobody || p.has_left || p.is_lost; });
  }
}

void ControlServer::accept_peers() {
  while (peers_.size() < size_ + kMostStrangers) {
    Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    set_up(socket, 5);
    Peer peer;
    peer.socket = std::move(socket);
    peer.heard = now_ns();
    peers_.push_back(std::move(peer));
  }
}

void ControlServer::read_from(Peer& peer) {
  char bytes[kReadBytes];
  for (int i = 0; i < kReadsAtOnce && !peer.is_closed; ++i) {
    const ssize_t count = ::recv(peer.socket.fd(), bytes, sizeof(bytes), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return lose(peer, why_closed(count, errno));
    const bool is_stranger = peer.rank == kNobody;
    if (!is_stranger) peer.heard = now_ns();
    if (!peer.reader.feed({bytes, static_cast<std::size_t>(count)}, is_stranger ? kMostHello : kMostFrame))
      return lose(peer, "it sent what is no frame");
    while (const std::optional<Frame> frame = peer.reader.next()) {
      take(peer, *frame);
      if (peer.is_closed) return;
    }
    if (static_cast<std::size_t>(count) < sizeof(bytes)) return;
  }
}

void ControlServer::write_to(Peer& peer) {
  if (const int error = peer.out.write_to(peer.socket); error != 0) lose(peer, why_closed(-1, error));
}

void ControlServer::take(Peer& peer, const Frame& frame) {
  if (peer.rank == kNobody) {
    if (frame.kind != FrameKind::Hello) {
      peer.is_closed = true;
      return;
    }
    return let_in(peer, frame.body);
  }
  switch (frame.kind) {
    case FrameKind::Gather: return gather(peer, frame.body);
    case FrameKind::Beat: {
      BodyReader body(frame.body);
      std::uint64_t waits_for = kNobody;
      body.text(peer.position.doing);
      body.number(waits_for);
      peer.position.waits_for = static_cast<std::uint32_t>(waits_for);
      return;
    }
    case FrameKind::Where: return tell_positions(peer);
    case FrameKind::Abort: return abort(frame.body);
    case FrameKind::Leave: peer.has_left = true; return;
    case FrameKind::Ping: {
      BodyWriter body;
      body.number(static_cast<std::uint64_t>(now_ns()));
      return send(peer, FrameKind::Pong, frame.body + body.take());
    }
    default: return lose(peer, "it sent a frame of a kind that ranks do not send");
  }
}

void ControlServer::let_in(Peer& peer, const std::string& hello) {
  BodyReader body(hello);
  std::uint64_t magic = 0;
  std::uint64_t version = 0;
  std::uint64_t rank = 0;
  std::uint64_t size = 0;
  std::string token;
  const bool is_ours = body.number(magic) && magic == kControlMagic && body.number(version) && body.text(token);
  // A stranger learns nothing, and disturbs nobody.
  if (!is_ours || token != token_ || !body.number(rank) || !body.number(size)) {
    peer.is_closed = true;
    return;
  }
  const auto refuse = [&](const std::string& why) {
    send(peer, FrameKind::Refused, why);
    peer.is_closed = true;
  };
  if (version != kControlVersion) return refuse("rank 0 runs another version of stave");
  if (size != size_ || rank >= size_)
    return refuse("rank 0 knows of " + std::to_string(size_) + " ranks; this one is rank " + std::to_string(rank) +
                  " of " + std::to_string(size));
  const auto is_taken = [&](const Peer& each) { return !each.is_closed && each.rank == rank; };
  if (std::ranges::any_of(peers_, is_taken)) return refuse("rank " + std::to_string(rank) + " is taken by another process");
  if (is_aborted_) return refuse("the run has ended already");
  peer.rank = static_cast<std::uint32_t>(rank);
  peer.heard = now_ns();
  if (known() == size_) welcome_all();
}

void ControlServer::welcome_all() {
  is_complete_ = true;
  // Those of this host may have come by an address that means nothing elsewhere.
  std::string outward;
  for (const Peer& peer : peers_)
    if (const std::string address = local_address(peer.socket); peer.rank != kNobody && !is_loopback(address))
      outward = address;
  BodyWriter welcome;
  welcome.text(boot_);
  welcome.text(outward);
  send_all(FrameKind::Welcome, welcome.take());
}

void ControlServer::gather(Peer& peer, std::string blob) {
  if (has_said_[peer.rank] != 0) return lose(peer, "it spoke twice in one round");
  has_said_[peer.rank] = 1;
  blobs_[peer.rank] = std::move(blob);
  std::size_t together = 0;
  for (const std::string& each : blobs_) together += each.size();
  if (together > kMostTogether)
    return abort("the ranks have " + std::to_string(together) + " bytes to tell each other at once; " +
                 std::to_string(kMostTogether) + " is the most");
  if (std::ranges::count(has_said_, 0) != 0) return;
  BodyWriter body;
  for (std::string& each : blobs_) {
    body.text(each);
    each.clear();
  }
  has_said_.assign(size_, 0);
  send_all(FrameKind::Gathered, body.take());
}

void ControlServer::tell_positions(Peer& peer) {
  std::vector<Position> all(size_, Position("gone"));
  for (const Peer& each : peers_)
    if (each.rank != kNobody && !each.is_closed) all[each.rank] = each.has_left ? Position("done") : each.position;
  const Ticks now = now_ns();
  const Ticks before = std::exchange(last_asked_, now);
  BodyWriter body;
  body.number(before == 0 || now - before > kAskedNs);
  for (const Position& each : all) {
    body.text(each.doing);
    body.number(each.waits_for);
  }
  send(peer, FrameKind::Where, body.take());
}

void ControlServer::send(Peer& peer, FrameKind kind, std::string_view body) {
  peer.out.add(std::make_shared<const std::string>(pack(kind, body)));
  write_to(peer);
}

void ControlServer::send_all(FrameKind kind, std::string_view body) {
  const auto frame = std::make_shared<const std::string>(pack(kind, body));
  for (Peer& peer : peers_) {
    if (peer.rank == kNobody || peer.is_closed) continue;
    peer.out.add(frame);
    write_to(peer);
  }
}

void ControlServer::lose(Peer& peer, const std::string& why) {
  peer.is_closed = true;
  if (peer.rank == kNobody || peer.has_left) return;
  abort("rank " + std::to_string(peer.rank) + " is gone: " + why + last_seen_at(peer.position.doing));
}

void ControlServer::abort(const std::string& cause) {
  if (is_aborted_) return;
  is_aborted_ = true;
  send_all(FrameKind::Abort, cause);
}

std::uint32_t ControlServer::known() const {
  const auto is_rank = [](const Peer& peer) { return peer.rank != kNobody && !peer.is_closed; };
  return static_cast<std::uint32_t>(std::ranges::count_if(peers_, is_rank));
}

std::string ControlServer::missing() const {
  std::string result;
  for (std::uint32_t r = 0; r < size_; ++r) {
    const auto is_it = [&](const Peer& peer) { return peer.rank == r && !peer.is_closed; };
    if (std::ranges::none_of(peers_, is_it)) result += (result.empty() ? "" : ", ") + std::to_string(r);
  }
  return result;
}

void ControlServer::look_around() {
  const Ticks now = now_ns();
  // Who has not listened cannot say that others were silent.
  const bool was_away = now - std::exchange(last_round_, now) > kSilenceNs / 3;
  for (Peer& peer : peers_) {
    if (peer.is_closed) continue;
    if (peer.rank == kNobody) {
      peer.is_closed = now - peer.heard > kHelloNs;
    } else if (was_away) {
      peer.heard = now;
    } else if (!peer.has_left && !is_aborted_ && now - peer.heard > kSilenceNs) {
      peer.is_lost = true;
      abort("rank " + std::to_string(peer.rank) + " has not been heard of for " +
            std::to_string(kSilenceNs / 1'000'000'000) + " s" + last_seen_at(peer.position.doing));
    }
  }
  if (!is_complete_ && !is_aborted_ && now > join_deadline_)
    abort("rank " + missing() + " did not come: " + std::to_string(known()) + " of " + std::to_string(size_) +
          " ranks are here");
  if (now - last_beat_ < kBeatNs) return;
  last_beat_ = now;
  const auto first = std::ranges::find(peers_, 0u, &Peer::rank);
  send_all(FrameKind::Beat, first == peers_.end() ? std::string() : first->position.doing);
}

}  // namespace stave
