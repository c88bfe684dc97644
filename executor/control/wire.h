// Wire: the frames of the control plane and the sockets they travel on. What they mean is the server's and the clients'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/ticks.h"

namespace stave {

/// Most bytes of a frame, and of one from somebody who has not said who they are.
inline constexpr std::size_t kMostFrame = std::size_t{1} << 30;
inline constexpr std::size_t kMostHello = 4096;

enum class FrameKind : std::uint8_t {
  /// Client: magic, version, token, rank, number of ranks, boot of its host.
  Hello,
  /// Server: all are here; boot of its host, and its address by which others reach it.
  Welcome,
  /// Server: you do not belong here, in words.
  Refused,
  /// Client: what it has to say. Server: what all have said.
  Gather,
  Gathered,
  /// Both: still here. Client: what it is doing, and the rank it waits for. Server: what rank 0 is doing, should that be
  /// lost.
  Beat,
  /// Client: its own time. Server: that, and the server's.
  Ping,
  Pong,
  /// Both: the run must end, in words.
  Abort,
  /// Client: done, and about to go.
  Leave,
  /// Client: where are all? Server: whether nobody else has asked just before; what each rank was last
  /// doing, and the rank it waits for.
  Where,
};

struct Frame {
  FrameKind kind = FrameKind::Beat;
  std::string body;
};

/// A frame as bytes: its length, its kind, its body.
std::string pack(FrameKind kind, std::string_view body);

/// Bytes that come in, cut into frames.
class FrameReader {
 public:
  /// Takes bytes in. False if what came is no frame, or one larger than allowed.
  bool feed(std::string_view bytes, std::size_t most);
  std::optional<Frame> next();

 private:
  std::string buffer_;
  std::size_t taken_ = 0;
};

/// Numbers and texts in the body of a frame.
class BodyWriter {
 public:
  void number(std::uint64_t value);
  void text(std::string_view value);
  std::string take() { return std::move(body_); }

 private:
  std::string body_;
};

class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  /// False, once the body has been too short, for this and all that follows.
  bool number(std::uint64_t& value);
  bool text(std::string& value);

 private:
  std::string_view rest_;
};

/// A socket, closed with its owner.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  int fd() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// Frames on their way out of a socket that does not wait. One frame for many sockets is kept once.
class Outbox {
 public:
  void add(std::shared_ptr<const std::string> frame) { frames_.push_back(std::move(frame)); }
  bool empty() const { return frames_.empty(); }
  /// Writes what the socket takes now. 0, or the system's error.
  int write_to(const Socket& socket);

 private:
  std::deque<std::shared_ptr<const std::string>> frames_;
  /// Bytes of the first one that have left.
  std::size_t written_ = 0;
};

/// Who can reach a listening socket.
enum class Reach : std::uint8_t { ThisHost, AllHosts };

/// Listens on `port`; 0 takes any. Errors: a port in use.
Result<Socket> listen_on(std::uint16_t port, Reach reach = Reach::AllHosts);
std::uint16_t port_of(const Socket& socket);

/// Connects, trying again at each address of `host` until `deadline` on the clock of now_ns(): the other end may not
/// listen yet. Only the look-up of the name may take longer. Errors: a name that does not resolve; nobody who listens.
Result<Socket> connect_to(const std::string& host, std::uint16_t port, Ticks deadline);

/// The address of this end of a connection, by which the other end sees it.
std::string local_address(const Socket& socket);

/// Whether an address or a name is this host's own alone: 127.x.x.x or localhost.
bool is_loopback(const std::string& host);

/// Why nothing can be read any more, where recv() gave `count` and errno `error`. A process that was killed closes its
/// connection or resets it, as it had read all or not.
std::string why_closed(std::ptrdiff_t count, int error);

/// Nothing waits for this end for ever: small frames go at once, and a silent link fails after `seconds`.
void set_up(const Socket& socket, int seconds);

/// Names this boot of this host, and the time namespace of this process: two with the same share a clock. Empty if it is
/// not known.
std::string boot_of_host();

}  // namespace stave
