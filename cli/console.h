// Console: what is known about the terminal, how the program reports, and how files are written.
// What is reported belongs to the commands.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stave {

/// Exit statuses. When interrupted it is 128 plus the signal.
enum class Exit : int { Done = 0, Rejected = 1, Usage = 2, Bug = 3 };

enum class Stream : std::uint8_t { Out, Err };

bool is_terminal(Stream stream);
/// Colour is for terminals only, and never under NO_COLOR or on a dumb one.
bool wants_colour(Stream stream);
/// Columns of the terminal, else of COLUMNS, else 100; from 40 to 10,000.
std::uint32_t terminal_width();

/// The text as a terminal may be sent it: a name of a file may hold anything. Controls become `?`, line ends stay.
std::string printable(std::string_view text);

/// Prints "stave: ..." to standard error, as `printable` has it.
Exit fail(std::string_view message);

/// Writes all of `text` to standard output. Errors: a full disk.
Result<void> print(std::string_view text);
void print_error(std::string_view text);

/// Writes `path` whole or not at all: beside it, then renamed. "-" is standard output.
///
/// Errors, each naming the path: it cannot be written, it is a folder, it is the same file as one of `inputs`. Text
/// that was not finished when the program is interrupted is removed.
Result<void> write_output(const std::string& path, std::string_view text, const std::vector<std::string>& inputs);

/// What `write_output` would refuse before anything is computed; it may still fail later, as of a full disk.
Result<void> check_output(const std::string& path, const std::vector<std::string>& inputs);

/// On an interrupt or a request to end: removes the unfinished output, and ends with 128 plus the signal.
void end_on_signals();

/// From now on the first interrupt only sets the flag returned, so that a run can close, and says so on standard error;
/// a second one ends the program at once, with 128 plus the signal.
const std::atomic<bool>* catch_interrupt();
/// The signal that set the flag; 0 if none did.
int interrupt_signal();

/// A line on a terminal that shows how far a long job is; nothing elsewhere.
class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)), shown_(is_terminal(Stream::Err)) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Redraws at most ten times a second.
  void show(std::uint64_t done, std::uint64_t all);
  void clear();

 private:
  std::string what_;
  bool shown_ = false;
  bool drawn_ = false;
  std::int64_t last_ms_ = -1000;
};

}  // namespace stave
