#include "cli/run/step_log.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/console.h"

namespace stave {

namespace {

/// The lines of a log up to a step. Errors: as open().
Result<std::string> lines_up_to(const std::string& path, std::uint64_t done) {
  std::ifstream in(path, std::ios::binary);
  std::string result;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_unsigned())
      return Failure{"--log: " + printable(path) + " is no log of steps; it is left as it is"};
    if (entry["step"].get<std::uint64_t>() <= done) result += line + "\n";
  }
  return result;
}

}  // namespace

Result<StepLog> StepLog::open(const std::string& path, std::optional<std::uint64_t> done) {
  StepLog log;
  log.path_ = printable(path);
  if (done) {
    const Result<std::string> kept = lines_up_to(path, *done);
    if (!kept) return kept.failure();
    if (const Result<void> written = write_output(path, kept.value(), {}); !written)
      return Failure{"--log: " + written.failure().message};
  }
  // An empty one is of a run that did not come to its first step.
  std::error_code error;
  const bool is_empty = std::filesystem::is_regular_file(path, error) && std::filesystem::is_empty(path, error);
  log.file_.reset(std::fopen(path.c_str(), done || is_empty ? "ae" : "wxe"));
  if (log.file_ == nullptr && errno == EEXIST)
    return Failure{"--log: there is " + log.path_ + " already; name a new file, or go on with it by --resume"};
  if (log.file_ == nullptr) return Failure{"--log: cannot write " + log.path_ + ": " + std::strerror(errno)};
  return log;
}

void StepLog::step(const StepReport& step) {
  // A line that was cut is the last, so that the log can be gone on with.
  if (!failure_.empty()) return;
  const nlohmann::ordered_json entry = {
      {"step", step.step + 1},
      {"loss", step.loss},
      {"gradient_norm", step.gradient_norm},
      {"tokens_per_second", step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0},
      {"seconds", step.seconds},
      {"makespan_us", static_cast<double>(step.makespan_ns) / 1e3},
      {"bubble", step.bubble ? nlohmann::ordered_json(*step.bubble) : nlohmann::ordered_json()},
  };
  const std::string line = entry.dump() + "\n";
  const bool written = std::fputs(line.c_str(), file_.get()) >= 0 && std::fflush(file_.get()) == 0;
  if (!written) failure_ = "--log: cannot write " + path_ + ": " + std::strerror(errno);
}

}  // namespace stave
