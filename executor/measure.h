// Measured steps: keeps the timelines of the last ones and says what is typical of them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/program.h"
#include "core/timeline.h"
#include "executor/run.h"

namespace stave {

class Measured {
 public:
  /// Keeps up to 31 steps, fewer of a very large program.
  explicit Measured(const Program& program);

  /// Takes the times of a step. The first step of a run is dropped when a second comes: caches are cold in it.
  void add(std::uint64_t step, const Timeline& timeline);

  /// Puts what is typical of them into a run's report: the step of median makespan, and the typical lengths. At least one
  /// must have been added.
  void report(RunReport& into) const;

 private:
  struct Step {
    std::uint64_t step = 0;
    Timeline timeline;
    Ticks makespan = 0;
  };
  /// The half of the steps whose makespans are in the middle, by rising makespan: one step that was disturbed counts for
  /// nothing.
  std::vector<const Step*> middle() const;
  /// Over `steps`, by kind, then stage; pairs after the ops by themselves. G that run as one count with what each took.
  std::vector<TypicalLength> lengths(const std::vector<const Step*>& steps) const;
  std::vector<TypicalMessage> messages(const std::vector<const Step*>& steps) const;
  const Program& program_;
  std::size_t most_;
  std::deque<Step> steps_;
};

/// From the start of the first op to the end of the last, optional ones left out. Unit: ticks.
Ticks makespan(const Program& program, const Timeline& timeline);

/// 1 less the sum of the lengths of what computes, streams left out and a pair taken once, over makespan times devices;
/// 0 if nothing took time.
double bubble(const Program& program, const Timeline& timeline);

}  // namespace stave
