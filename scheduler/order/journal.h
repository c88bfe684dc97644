// Journal: what a simulation that runs ahead has changed, so that it can be taken back to an earlier moment.
#pragma once

#include <cstddef>
#include <vector>

#include "core/ticks.h"

namespace stave {

/// Changes of type `Change`, grouped by the moment in which they were made. Moments rise.
template <class Change>
class Journal {
 public:
  void begin(Ticks moment) {
    forget_old();
    marks_.push_back({moment, base_ + changes_.size()});
  }
  void note(const Change& change) { changes_.push_back(change); }

  /// Calls `undo` for every change made in a moment that `is_too_late`, the newest first, and drops it.
  template <class TooLate, class Undo>
  void take_back(TooLate&& is_too_late, Undo&& undo) {
    while (marks_.size() > first_mark_ && is_too_late(marks_.back().moment)) {
      while (base_ + changes_.size() > marks_.back().change) {
        const Change change = changes_.back();
        changes_.pop_back();
        undo(change);
      }
      marks_.pop_back();
    }
  }

  /// Moments up to and including this one will never be taken back.
  void settle(Ticks moment) {
    while (first_mark_ < marks_.size() && marks_[first_mark_].moment <= moment) ++first_mark_;
  }

 private:
  struct Mark {
    Ticks moment = 0;
    std::size_t change = 0;
  };

  /// Gives the memory of settled moments back, once they are the larger part.
  void forget_old() {
    if (first_mark_ < 1024 || first_mark_ * 2 < marks_.size()) return;
    const std::size_t keep_from = first_mark_ < marks_.size() ? marks_[first_mark_].change : base_ + changes_.size();
    changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(keep_from - base_));
    base_ = keep_from;
    marks_.erase(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(first_mark_));
    first_mark_ = 0;
  }

  std::vector<Mark> marks_;
  std::vector<Change> changes_;
  std::size_t first_mark_ = 0;
  /// Number of changes forgotten.
  std::size_t base_ = 0;
};

}  // namespace stave
