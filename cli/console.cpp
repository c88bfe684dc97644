#include "cli/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compiler/utf8.h"

namespace stave {
namespace {

int descriptor(Stream stream) { return stream == Stream::Out ? STDOUT_FILENO : STDERR_FILENO; }

/// Path of the output being written, for the signal handler alone: a handler can be given nothing.
char unfinished_path[4096 + 16];
std::atomic<bool> unfinished{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Whether the next signal is to be caught, and the one that was.
std::atomic<bool> catching{false};
std::atomic<bool> interrupted{false};
std::atomic<int> caught_signal{0};

extern "C" void end_by(int signal_number) {
  if (catching.exchange(false)) {
    caught_signal = signal_number;
    interrupted = true;
    constexpr std::string_view kSaid = "stave: interrupted; ends as soon as it can, or at once when interrupted again\n";
    // Nothing can be done where it cannot be said.
    if (write(STDERR_FILENO, kSaid.data(), kSaid.size()) < 0) return;
    return;
  }
  if (unfinished) unlink(unfinished_path);
  _exit(128 + signal_number);
}

/// Errors: the system's, none is 0.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

Failure cannot_write(const std::string& path, int error) {
  return Failure{fmt::format("cannot write `{}`: {}", path, std::strerror(error))};
}

}  // namespace

bool is_terminal(Stream stream) { return isatty(descriptor(stream)) == 1; }

bool wants_colour(Stream stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return is_terminal(stream) && (no_colour == nullptr || *no_colour == '\0') &&
         (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

std::uint32_t terminal_width() {
  long columns = 0;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  const char* given = std::getenv("COLUMNS");
  if (columns == 0 && given != nullptr) columns = std::strtol(given, nullptr, 10);
  if (columns <= 0) columns = 100;
  return static_cast<std::uint32_t>(std::clamp(columns, 40L, 10000L));
}

std::string printable(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string result;
  for (std::size_t at = 0; at < valid.size();) {
    const std::size_t length = utf8_length(valid, at);
    if (valid[at] == '\n' || is_printable(utf8_character(valid, at, length)))
      result += valid.substr(at, length);
    else
      result += '?';
    at += length;
  }
  return result;
}

Exit fail(std::string_view message) {
  // A snippet at its end has ended its line.
  if (message.ends_with('\n')) message.remove_suffix(1);
  print_error(fmt::format("stave: {}\n", printable(message)));
  return Exit::Usage;
}

Result<void> print(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error != 0) return Failure{fmt::format("cannot write to standard output: {}", std::strerror(error))};
  return {};
}

void print_error(std::string_view text) { write_all(STDERR_FILENO, text); }

Result<void> check_output(const std::string& path, const std::vector<std::string>& inputs) {
  if (path == "-") return {};
  if (path.size() > 4095) return Failure{"the name of an output is too long"};
  struct stat output = {};
  if (stat(path.c_str(), &output) != 0) {
    // What is new is made in its folder.
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) return cannot_write(path, errno);
    return {};
  }
  if (S_ISDIR(output.st_mode)) return Failure{fmt::format("cannot write `{}`: it is a folder", path)};
  if (access(path.c_str(), W_OK) != 0) return cannot_write(path, errno);
  for (const std::string& input : inputs) {
    struct stat other = {};
    if (input != "-" && stat(input.c_str(), &other) == 0 && other.st_dev == output.st_dev &&
        other.st_ino == output.st_ino)
      return Failure{fmt::format("`{}` is an input; write the output elsewhere", path)};
  }
  return {};
}

Result<void> write_output(const std::string& path, std::string_view text, const std::vector<std::string>& inputs) {
  if (path == "-") return print(text);
  if (Result<void> checked = check_output(path, inputs); !checked) return checked;
  struct stat old = {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    // A device or a pipe cannot be replaced: it is written into.
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return cannot_write(path, errno);
    int error = write_all(file, text);
    if (close(file) != 0 && error == 0) error = errno;
    if (error != 0) return cannot_write(path, error);
    return {};
  }
  // A link stays a link: the file that it names is replaced.
  std::string target = path;
  if (char* real = exists ? realpath(path.c_str(), nullptr) : nullptr) {
    target = real;
    free(real);
    if (access(target.c_str(), W_OK) != 0) return cannot_write(path, errno);
  }
  if (target.size() > 4095) return Failure{"the name of an output is too long"};
  const std::string beside = target + ".XXXXXX";
  std::memcpy(unfinished_path, beside.c_str(), beside.size() + 1);
  const int file = mkostemp(unfinished_path, O_CLOEXEC);
  if (file < 0) return cannot_write(path, errno);
  unfinished = true;
  const mode_t mask = umask(0);
  umask(mask);
  int error = write_all(file, text);
  if (fchmod(file, exists ? old.st_mode & 0777 : 0666 & ~mask) != 0 && error == 0) error = errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && rename(unfinished_path, target.c_str()) != 0) error = errno;
  if (error != 0) unlink(unfinished_path);
  unfinished = false;
  if (error != 0) return cannot_write(path, error);
  return {};
}

void end_on_signals() {
  struct sigaction action = {};
  action.sa_handler = end_by;
  sigemptyset(&action.sa_mask);
  // A file that grows over the limit of the shell is told by the write that fails, as a full disk is.
  signal(SIGXFSZ, SIG_IGN);
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal_number, &action, nullptr);
}

const std::atomic<bool>* catch_interrupt() {
  catching = true;
  return &interrupted;
}

int interrupt_signal() { return caught_signal; }

void Progress::show(std::uint64_t done, std::uint64_t all) {
  if (!shown_ || all == 0) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const std::int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  if (now_ms - last_ms_ < 100) return;
  last_ms_ = now_ms;
  drawn_ = true;
  constexpr std::uint64_t kBar = 30;
  const std::uint64_t filled = std::min(done, all) * kBar / all;
  print_error(fmt::format("\r{} [{:<{}}] {}/{}\x1b[K", what_, std::string(filled, '='), kBar, done, all));
}

void Progress::clear() {
  if (drawn_) print_error("\r\x1b[K");
  drawn_ = false;
}

}  // namespace stave
