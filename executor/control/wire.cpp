#include "executor/control/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "executor/clock.h"

namespace stave {

namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
constexpr std::chrono::milliseconds kBetweenTries(50);
/// An address that says nothing is tried so long, then the next one, then again.
constexpr Ticks kTryNs = 2'000'000'000;

// 0, or the system's error. A connect() that waits would go on for minutes at a host that is silent.
int connect_by(const Socket& socket, const sockaddr* address, socklen_t size, Ticks deadline) {
  const int flags = ::fcntl(socket.fd(), F_GETFL);
  ::fcntl(socket.fd(), F_SETFL, flags | O_NONBLOCK);
  if (::connect(socket.fd(), address, size) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd polled = {socket.fd(), POLLOUT, 0};
    const Ticks left_ms = (std::min(deadline, now_ns() + kTryNs) - now_ns()) / 1'000'000;
    if (::poll(&polled, 1, static_cast<int>(std::max<Ticks>(left_ms, 1))) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return error;
  }
  ::fcntl(socket.fd(), F_SETFL, flags);
  return 0;
}

}  // namespace

std::string pack(FrameKind kind, std::string_view body) {
  const auto length = static_cast<std::uint32_t>(body.size() + 1);
  std::string result(reinterpret_cast<const char*>(&length), kLengthBytes);
  result.push_back(static_cast<char>(kind));
  result.append(body);
  return result;
}

bool FrameReader::feed(std::string_view bytes, std::size_t most) {
  buffer_.erase(0, std::exchange(taken_, 0));
  buffer_.append(bytes);
  if (buffer_.size() < kLengthBytes) return true;
  std::uint32_t length = 0;
  std::memcpy(&length, buffer_.data(), kLengthBytes);
  return length >= 1 && length <= most;
}

std::optional<Frame> FrameReader::next() {
  std::uint32_t length = 0;
  if (buffer_.size() - taken_ < kLengthBytes) return {};
  std::memcpy(&length, buffer_.data() + taken_, kLengthBytes);
  if (length < 1 || buffer_.size() - taken_ - kLengthBytes < length) return {};
  const char* begin = buffer_.data() + taken_ + kLengthBytes;
  taken_ += kLengthBytes + length;
  return Frame{static_cast<FrameKind>(*begin), std::string(begin + 1, length - 1)};
}

void BodyWriter::number(std::uint64_t value) { body_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }

void BodyWriter::text(std::string_view value) {
  number(value.size());
  body_.append(value);
}

bool BodyReader::number(std::uint64_t& value) {
  if (rest_.size() < sizeof(value)) {
    rest_ = {};
    return false;
  }
  std::memcpy(&value, rest_.data(), sizeof(value));
  rest_.remove_prefix(sizeof(value));
  return true;
}

bool BodyReader::text(std::string& value) {
  std::uint64_t size = 0;
  if (!number(size) || size > rest_.size()) {
    rest_ = {};
    return false;
  }
  value.assign(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return true;
}

int Outbox::write_to(const Socket& socket) {
  while (!frames_.empty()) {
    const std::string& frame = *frames_.front();
    const ssize_t count =
        ::send(socket.fd(), frame.data() + written_, frame.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR ? 0 : errno;
    written_ += static_cast<std::size_t>(count);
    if (written_ < frame.size()) continue;
    frames_.pop_front();
    written_ = 0;
  }
  return 0;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<Socket> listen_on(std::uint16_t port, Reach reach) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(reach == Reach::ThisHost ? INADDR_LOOPBACK : INADDR_ANY);
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.fd(), 1024) != 0)
    return Failure{"rank 0 cannot listen on port " + std::to_string(port) + ": " + std::strerror(errno)};
  return socket;
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Result<Socket> connect_to(const std::string& host, std::uint16_t port, Ticks deadline) {
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (const int error = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found); error != 0)
    return Failure{"the address of rank 0, " + host + ", cannot be found: " + ::gai_strerror(error)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  int error = 0;
  while (true) {
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!socket.valid()) return Failure{std::string("the system gives no socket: ") + std::strerror(errno)};
      error = connect_by(socket, each->ai_addr, each->ai_addrlen, deadline);
      if (error == 0) return socket;
    }
    if (now_ns() >= deadline) break;
    std::this_thread::sleep_for(kBetweenTries);
  }
  return Failure{"rank 0 does not answer at " + host + " port " + service + ": " + std::strerror(error)};
}

std::string local_address(const Socket& socket) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return text;
}

std::string why_closed(std::ptrdiff_t count, int error) {
  return count == 0 || error == ECONNRESET || error == EPIPE ? "it has closed its connection" : std::strerror(error);
}

bool is_loopback(const std::string& host) { return host == "localhost" || host.rfind("127.", 0) == 0; }

void set_up(const Socket& socket, int seconds) {
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const unsigned milliseconds = static_cast<unsigned>(seconds) * 1000;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
  const timeval limit{seconds, 0};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

std::string boot_of_host() {
  std::string result;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> result;
  char time_namespace[64] = {};
  if (!result.empty() && ::readlink("/proc/self/ns/time", time_namespace, sizeof(time_namespace) - 1) > 0)
    result += time_namespace;
  return result;
}

}  // namespace stave
