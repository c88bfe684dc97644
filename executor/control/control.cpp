#include "executor/control/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "executor/clock.h"

namespace stave {

namespace {

constexpr int kPollMs = 50;
constexpr int kPings = 8;
constexpr std::size_t kReadBytes = std::size_t{1} << 16;
constexpr Ticks kSecondNs = 1'000'000'000;
constexpr std::chrono::milliseconds kCauseWait(500);
constexpr Ticks kAnswerNs = 2 * kSecondNs;

// Whether rank 0 listens for ranks of its own host only.
Reach reach_of(const RankPlace& place) {
  const bool is_alone = place.size == 1 || place.host == "localhost" || place.host == "127.0.0.1";
  return is_alone ? Reach::ThisHost : Reach::AllHosts;
}

std::chrono::system_clock::time_point in(std::chrono::milliseconds wait) {
  // Of the system clock: the thread sanitizer of GCC 12 does not know the wait on a steady one.
  return std::chrono::system_clock::now() + wait;
}

}  // namespace

Result<std::unique_ptr<Control>> Control::join(const RankPlace& place, int seconds) {
  const Ticks deadline = now_ns() + seconds * kSecondNs;
  std::unique_ptr<ControlServer> server;
  std::uint16_t port = place.port;
  std::string host = place.host;
  if (place.rank == 0) {
    Result<Socket> listener =
        place.listener >= 0 ? Result<Socket>(Socket(place.listener)) : listen_on(place.port, reach_of(place));
    if (!listener) return listener.failure();
    port = port_of(*listener);
    host = "127.0.0.1";
    server = std::make_unique<ControlServer>(std::move(*listener), place.size, place.token, deadline);
  }
  Result<Socket> socket = connect_to(host, port, deadline);
  if (!socket) return socket.failure();
  std::unique_ptr<Control> control(new Control(place, std::move(*socket)));
  control->server_ = std::move(server);
  if (Result<void> here = control->say_hello(place, deadline + kSilenceNs); !here) return here.failure();
  return control;
}

Control::Control(const RankPlace& place, Socket socket)
    : rank_(place.rank), size_(place.size), socket_(std::move(socket)), address_(local_address(socket_)) {
  set_up(socket_, 5);
  thread_ = std::thread([this] { listen(); });
}

Control::~Control() {
  ending_ = true;
  thread_.join();
  // The server, if it is here, waits for the others to leave: this end must be closed by then.
  socket_ = Socket();
}

Result<void> Control::say_hello(const RankPlace& place, Ticks deadline) {
  BodyWriter hello;
  hello.number(kControlMagic);
  hello.number(kControlVersion);
  hello.text(place.token);
  hello.number(rank_);
  hello.number(size_);
  send(FrameKind::Hello, hello.take());
  std::unique_lock lock(mutex_);
  has_said_hello_ = true;
  while (!is_welcome_ && refusal_.empty() && !is_aborted() && now_ns() < deadline)
    changed_.wait_until(lock, in(std::chrono::milliseconds(100)));
  if (!refusal_.empty()) return Failure{"rank " + std::to_string(rank_) + " is not let in: " + refusal_};
  if (is_aborted()) return Failure{cause_};
  if (!is_welcome_) return Failure{"rank 0 does not answer"};
  lock.unlock();
  return sync_clock();
}

void Control::listen() {
  FrameReader reader;
  char bytes[kReadBytes];
  // Rank 0 may be slow to come: it is not silent before it has spoken.
  Ticks heard = 0;
  Ticks beaten = 0;
  Ticks last_round = now_ns();
  while (!ending_) {
    pollfd polled = {socket_.fd(), POLLIN, 0};
    ::poll(&polled, 1, kPollMs);
    const Ticks now = now_ns();
    // Who has not listened cannot say that the other was silent.
    if (now - std::exchange(last_round, now) > kSilenceNs / 3 && heard != 0) heard = now;
    if (now - beaten >= kBeatNs) {
      beaten = now;
      beat();
    }
    if (polled.revents == 0) {
      if (heard != 0 && now - heard > kSilenceNs)
        note_lost("has not been heard of for " + std::to_string(kSilenceNs / kSecondNs) + " s");
      continue;
    }
    const ssize_t count = ::recv(socket_.fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) {
      const std::string why = why_closed(count, errno);
      if (heard == 0) {
        // A stranger's connection is closed without a word: so is one with a wrong token.
        const std::scoped_lock lock(mutex_);
        refusal_ = "rank 0 has closed the connection: its token (STAVE_TOKEN) is another one, or it is not stave";
      }
      note_lost("is gone: " + why);
      return;
    }
    heard = now;
    if (!reader.feed({bytes, static_cast<std::size_t>(count)}, kMostFrame)) {
      note_abort("rank 0 sent what is no frame", true);
      return;
    }
    while (const std::optional<Frame> frame = reader.next()) take(*frame);
  }
}

void Control::take(const Frame& frame) {
  if (frame.kind == FrameKind::Abort) return note_abort(frame.body, true);
  const Ticks now = now_ns();
  BodyReader body(frame.body);
  const std::scoped_lock lock(mutex_);
  if (frame.kind == FrameKind::Welcome) {
    std::string boot;
    std::string outward;
    shares_clock_ = body.text(boot) && !boot.empty() && boot == boot_of_host();
    if (body.text(outward) && !outward.empty() && is_loopback(address_)) address_ = outward;
    is_welcome_ = true;
  } else if (frame.kind == FrameKind::Beat) {
    first_rank_doing_ = frame.body;
  } else if (frame.kind == FrameKind::Refused) {
    refusal_ = frame.body;
  } else if (frame.kind == FrameKind::Gathered) {
    gathered_.assign(size_, {});
    for (std::string& each : gathered_) body.text(each);
    has_gathered_ = true;
  } else if (frame.kind == FrameKind::Where) {
    std::uint64_t is_first = 0;
    body.number(is_first);
    whereabouts_.is_first = is_first != 0;
    whereabouts_.ranks.assign(size_, {});
    for (Position& each : whereabouts_.ranks) {
      std::uint64_t waits_for = kNobody;
      body.text(each.doing);
      body.number(waits_for);
      each.waits_for = static_cast<std::uint32_t>(waits_for);
    }
  } else if (frame.kind == FrameKind::Pong) {
    std::uint64_t sent = 0;
    std::uint64_t there = 0;
    if (!body.number(sent) || !body.number(there)) return;
    pong_sent_ = static_cast<Ticks>(sent);
    pong_at_server_ = static_cast<Ticks>(there);
    pong_arrived_ = now;
  }
  changed_.notify_all();
}

void Control::send(FrameKind kind, std::string_view body) {
  const std::string bytes = pack(kind, body);
  const std::scoped_lock lock(send_mutex_);
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(socket_.fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    // That the other end is gone shows where it is read from. A frame cut short cannot be followed by another one.
    if (count <= 0) {
      ::shutdown(socket_.fd(), SHUT_RDWR);
      return;
    }
    sent += static_cast<std::size_t>(count);
  }
}

void Control::beat() {
  Position position;
  {
    const std::scoped_lock lock(mutex_);
    if (!has_said_hello_ || has_left_) return;
    if (position_) position = position_();
  }
  BodyWriter body;
  body.text(position.doing);
  body.number(position.waits_for);
  send(FrameKind::Beat, body.take());
}

void Control::note_lost(const std::string& why) {
  std::string doing;
  {
    const std::scoped_lock lock(mutex_);
    doing = first_rank_doing_;
  }
  note_abort("rank 0 " + why + last_seen_at(doing), true);
}

void Control::note_abort(const std::string& cause, bool is_final) {
  const std::scoped_lock lock(mutex_);
  if (is_cause_final_ || has_left_ || (is_aborted_ && !is_final)) return;
  cause_ = cause;
  is_cause_final_ = is_final;
  is_aborted_.store(true, std::memory_order_release);
  changed_.notify_all();
}

Result<std::vector<std::string>> Control::gather(std::string_view mine) {
  if (mine.size() > kMostBlob)
    return Failure{"rank " + std::to_string(rank_) + " has " + std::to_string(mine.size()) +
                   " bytes to tell the others; " + std::to_string(kMostBlob) + " is the most"};
  {
    const std::scoped_lock lock(mutex_);
    has_gathered_ = false;
  }
  send(FrameKind::Gather, mine);
  std::unique_lock lock(mutex_);
  // Somebody who is lost is found out by the server, so this ends.
  while (!has_gathered_ && !is_aborted()) changed_.wait_until(lock, in(std::chrono::milliseconds(100)));
  if (!has_gathered_) return Failure{cause_};
  return std::move(gathered_);
}

void Control::abort(const std::string& cause) {
  note_abort(cause, false);
  send(FrameKind::Abort, cause);
}

std::string Control::cause() const {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, in(kCauseWait), [&] { return is_cause_final_ || !is_aborted() || has_left_; });
  return cause_;
}

void Control::set_position(std::function<Position()> position) {
  const std::scoped_lock lock(mutex_);
  position_ = std::move(position);
}

Result<Whereabouts> Control::whereabouts() {
  const Ticks deadline = now_ns() + kAnswerNs;
  {
    const std::scoped_lock lock(mutex_);
    whereabouts_.ranks.clear();
  }
  send(FrameKind::Where, "");
  std::unique_lock lock(mutex_);
  while (whereabouts_.ranks.empty() && !is_aborted() && now_ns() < deadline)
    changed_.wait_until(lock, in(std::chrono::milliseconds(100)));
  if (!whereabouts_.ranks.empty()) return std::move(whereabouts_);
  return Failure{is_aborted() ? cause_ : "rank 0 does not say where the ranks are"};
}

Result<void> Control::sync_clock() {
  if (shares_clock_ || (synced_ != 0 && now_ns() - synced_ < kSecondNs)) return {};
  Ticks shortest = kMaxTicks;
  for (int i = 0; i < kPings; ++i) {
    const Ticks sent = now_ns();
    BodyWriter ping;
    ping.number(static_cast<std::uint64_t>(sent));
    send(FrameKind::Ping, ping.take());
    std::unique_lock lock(mutex_);
    while (pong_sent_ != sent && !is_aborted()) changed_.wait_until(lock, in(std::chrono::milliseconds(100)));
    if (pong_sent_ != sent) return Failure{cause_};
    if (pong_arrived_ - sent >= shortest) continue;
    shortest = pong_arrived_ - sent;
    offset_ns_ = sent + shortest / 2 - pong_at_server_;
  }
  synced_ = now_ns();
  return {};
}

void Control::leave() {
  {
    const std::scoped_lock lock(mutex_);
    if (has_left_) return;
    has_left_ = true;
    position_ = nullptr;
  }
  send(FrameKind::Leave, "");
}

}  // namespace stave
