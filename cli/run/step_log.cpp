#include "cli/run/step_log.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/console.h"

namespace stave {

Result<StepLog> StepLog::open(const std::string& path, bool goes_on) {
  StepLog log;
  log.path_ = printable(path);
  log.file_.reset(std::fopen(path.c_str(), goes_on ? "ae" : "wxe"));
  if (log.file_ == nullptr) return Failure{"--log: cannot write " + log.path_ + ": " + std::strerror(errno)};
  return log;
}

void StepLog::step(const StepReport& step) {
  const nlohmann::ordered_json entry = {
      {"step", step.step + 1},
      {"loss", step.loss},
      {"gradient_norm", step.gradient_norm},
      {"tokens_per_second", step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0},
      {"seconds", step.seconds},
      {"makespan_us", static_cast<double>(step.makespan_ns) / 1e3},
      {"bubble", step.bubble},
  };
  const std::string line = entry.dump() + "\n";
  const bool written = std::fputs(line.c_str(), file_.get()) >= 0 && std::fflush(file_.get()) == 0;
  if (!written && failure_.empty()) failure_ = "--log: cannot write " + path_ + ": " + std::strerror(errno);
}

}  // namespace stave
