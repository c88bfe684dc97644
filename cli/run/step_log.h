// StepLog: a JSON object a line for every step of a run, in a file that whoever watches the run can follow.
#pragma once

#include <cstdio>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "executor/run.h"

namespace stave {

class StepLog {
 public:
  /// Makes a file; or goes on with one that has `done` steps at least, of which those behind are dropped, as is a last line
  /// that was not finished. Errors: one that exists where a new one is due, is no log of steps, or cannot be written.
  static Result<StepLog> open(const std::string& path, std::optional<std::uint64_t> done);

  /// Writes a step at once. Keeps the first reason why it could not.
  void step(const StepReport& step);
  const std::string& failure() const { return failure_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string failure_;
};

}  // namespace stave
