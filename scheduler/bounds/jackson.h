// Jackson's preemptive schedule: the least time in which one machine can do jobs with heads and tails, if it may leave
// one and take it up again. Source: Carlier, EJOR 11, 1982.
#pragma once

#include <vector>

#include "core/ticks.h"

namespace stave::bounds {

struct Job {
  /// Earliest start, at least 0.
  Ticks head = 0;
  Ticks length = 0;
  /// Time that must pass after its end.
  Ticks tail = 0;
};

/// The latest end with its tail, least over all preemptive schedules; 0 without jobs. Cost: O(n log n).
Ticks jackson(std::vector<Job> jobs);

/// The times at which one machine is busy that takes up each job as soon as it may. Which job it serves when does not
/// matter for that.
class Busy {
 public:
  void clear() {
    spans_.clear();
    end_ = kNever;
  }
  /// Adds a job that may start at `head`. Cost: O(log n) and what moves behind it, mostly nothing.
  void add(Ticks head, Ticks length);
  /// When all is done; kNever without jobs.
  Ticks end() const { return end_; }

  static constexpr Ticks kNever = INT64_MIN;

 private:
  struct Span {
    Ticks begin = 0;
    Ticks end = 0;
  };
  std::vector<Span> spans_;
  Ticks end_ = kNever;
};

}  // namespace stave::bounds
