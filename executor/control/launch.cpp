#include "executor/control/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "executor/clock.h"
#include "executor/control/wire.h"

namespace stave {

namespace {

constexpr int kPollMs = 50;
/// A line that is longer is passed on in parts.
constexpr std::size_t kMostLine = std::size_t{1} << 16;

struct Child {
  pid_t pid = -1;
  /// What it says; not valid for rank 0, and once that has ended.
  Socket output;
  std::string line;
  bool has_ended = false;
};

std::string random_token() {
  std::random_device source;
  std::string result;
  for (int i = 0; i < 4; ++i) {
    char digits[16];
    std::snprintf(digits, sizeof(digits), "%08x", source());
    result += digits;
  }
  return result;
}

// By its own name, by which `ps` lists the ranks, unless that has become another program meanwhile.
std::string own_path() {
  constexpr const char* kSelf = "/proc/self/exe";
  char path[4096] = {};
  const ssize_t size = ::readlink(kSelf, path, sizeof(path) - 1);
  return size > 0 && ::access(path, X_OK) == 0 ? path : kSelf;
}

// `output` is where it says what it has to say, -1 for rank 0, which alone takes over the listener.
[[noreturn]] void become_rank(const std::string& path, std::vector<char*>& arguments, std::vector<char*>& variables,
                              int output, int listener, pid_t launcher) {
  // Interrupts come from the launcher alone, and with it the rank ends.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != launcher) ::_exit(2);
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
  } else {
    ::fcntl(listener, F_SETFD, 0);
  }
  ::execve(path.c_str(), arguments.data(), variables.data());
  ::_exit(2);
}

class Job {
 public:
  explicit Job(std::uint32_t count) : children_(count) {}

  Result<void> start(const std::vector<std::string>& words) {
    Result<Socket> listener = listen_on(0, Reach::ThisHost);
    if (!listener) return listener.failure();
    const std::string token = random_token();
    for (std::uint32_t r = 0; r < children_.size(); ++r)
      if (Result<void> started = start(r, words, *listener, token); !started) {
        pass_on(SIGTERM);
        return started;
      }
    return {};
  }

  int watch(const std::function<int()>& interrupt, Ticks grace_ns) {
    int passed = 0;
    int worst = 0;
    Ticks deadline = kMaxTicks;
    const auto has_ended = [](const Child& child) { return child.has_ended || child.pid < 0; };
    while (!std::ranges::all_of(children_, has_ended)) {
      if (const int signal = interrupt(); signal != passed) {
        passed = signal;
        pass_on(signal);
      }
      listen();
      const auto ended = std::ranges::count_if(children_, has_ended);
      for (std::uint32_t r = 0; r < children_.size(); ++r) worst = std::max(worst, look_at(r));
      if (worst != 0 && std::ranges::count_if(children_, has_ended) > ended) deadline = now_ns() + grace_ns;
      if (now_ns() > deadline) pass_on(SIGKILL);
    }
    return worst;
  }

 private:
  Result<void> start(std::uint32_t rank, const std::vector<std::string>& words, const Socket& listener,
                     const std::string& token) {
    int ends[2] = {-1, -1};
    if (rank != 0 && ::pipe2(ends, O_CLOEXEC) != 0)
      return Failure{"rank " + std::to_string(rank) + " cannot be started: " + std::strerror(errno)};
    std::vector<std::string> texts = {
        "RANK=" + std::to_string(rank),
        "WORLD_SIZE=" + std::to_string(children_.size()),
        "LOCAL_RANK=" + std::to_string(rank),
        "LOCAL_WORLD_SIZE=" + std::to_string(children_.size()),
        "MASTER_ADDR=127.0.0.1",
        "STAVE_LAUNCHED=1",
        "MASTER_PORT=" + std::to_string(port_of(listener)),
        "STAVE_TOKEN=" + token,
    };
    if (rank == 0) texts.push_back("STAVE_LISTENER=" + std::to_string(listener.fd()));
    // All that is needed after fork() is made before it.
    std::vector<char*> variables;
    for (std::string& text : texts) variables.push_back(text.data());
    for (char** each = environ; *each != nullptr; ++each) {
      const auto is_ours = [&](const std::string& text) {
        return std::strncmp(*each, text.data(), text.find('=') + 1) == 0;
      };
      if (std::ranges::none_of(texts, is_ours)) variables.push_back(*each);
    }
    variables.push_back(nullptr);
    std::vector<std::string> copies = words;
    std::vector<char*> arguments;
    for (std::string& word : copies) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string path = own_path();
    const pid_t launcher = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become_rank(path, arguments, variables, ends[1], listener.fd(), launcher);
    Child& child = children_[rank];
    child.output = Socket(ends[0]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const Socket other(ends[1]);
    if (pid < 0) return Failure{"rank " + std::to_string(rank) + " cannot be started: " + std::strerror(errno)};
    child.pid = pid;
    return {};
  }

  void pass_on(int signal) {
    for (const Child& child : children_)
      if (child.pid > 0 && !child.has_ended) ::kill(child.pid, signal);
  }

  void listen() {
    std::vector<pollfd> polled;
    for (const Child& child : children_) polled.push_back({child.output.fd(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), kPollMs);
    for (std::uint32_t r = 0; r < children_.size(); ++r)
      if (polled[r].revents != 0) read_from(r);
  }

  // False if there is nothing to read at the moment, or any more.
  bool read_from(std::uint32_t rank) {
    Child& child = children_[rank];
    char bytes[4096];
    const ssize_t count = ::read(child.output.fd(), bytes, sizeof(bytes));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (count <= 0) {
      close_output(rank);
      return false;
    }
    child.line.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = child.line.find('\n'); end != std::string::npos; end = child.line.find('\n')) {
      say(rank, child.line.substr(0, end + 1));
      child.line.erase(0, end + 1);
    }
    if (child.line.size() > kMostLine) say(rank, std::exchange(child.line, "") + "\n");
    return true;
  }

  void close_output(std::uint32_t rank) {
    Child& child = children_[rank];
    child.output = Socket();
    if (!child.line.empty()) say(rank, std::exchange(child.line, "") + "\n");
  }

  static void say(std::uint32_t rank, const std::string& line) {
    std::fprintf(stderr, "rank %u: %s", rank, line.c_str());
  }

  // Its exit status, once it has ended.
  int look_at(std::uint32_t rank) {
    Child& child = children_[rank];
    if (child.has_ended || child.pid < 0) return 0;
    int status = 0;
    if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return 0;
    child.has_ended = true;
    // A process that it has left behind may keep the other end open, so what is there now is all.
    while (child.output.valid() && read_from(rank)) continue;
    if (child.output.valid()) close_output(rank);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    std::fprintf(stderr, "stave: rank %u was ended by signal %d (%s)\n", rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 2;
  }

  std::vector<Child> children_;
};

}  // namespace

Result<int> launch_ranks(std::uint32_t count, const std::vector<std::string>& words,
                         const std::function<int()>& interrupt, Ticks grace_ns) {
  Job job(count);
  const Result<void> started = job.start(words);
  const int worst = job.watch(interrupt, grace_ns);
  if (!started) return started.failure();
  return worst;
}

}  // namespace stave
