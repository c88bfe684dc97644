// First come, first served: a link carries one message after the other, by the time at which each could start, then by the
// issue order. One that waits for one of its links keeps those behind it waiting on the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/ticks.h"
#include "scheduler/contention/machine.h"
#include "scheduler/contention/sharing/line.h"

namespace stave {

class FirstCome {
 public:
  static constexpr bool kWaits = true;
  static constexpr bool kPlansAgain = false;

  explicit FirstCome(const Contention& contention) : contention_(contention), lines_(contention.links) {}

  template <class Go>
  void ask(std::uint32_t message, std::uint32_t edge, const Go& go) {
    bool is_first = true;
    for (std::uint32_t link : contention_.links_of_edge[edge]) {
      is_first = is_first && lines_[link].empty();
      lines_[link].push({message, edge});
    }
    if (is_first) go(message);
  }

  template <class Plan>
  void move(std::uint32_t message, std::uint32_t, Ticks length, Ticks now, const Plan& plan) {
    plan(message, now + length);
  }

  template <class Go, class Plan>
  void leave(std::uint32_t, std::uint32_t edge, Ticks, const Go& go, const Plan&) {
    const auto links = contention_.links_of_edge[edge];
    for (std::uint32_t link : links) lines_[link].pop();
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (lines_[links[i]].empty()) continue;
      const Waiting next = lines_[links[i]].front();
      // One that waits for several of these links may have been started by an earlier one.
      const bool is_seen = std::ranges::any_of(links.first(i), [&](std::uint32_t link) {
        return !lines_[link].empty() && lines_[link].front().message == next.message;
      });
      if (!is_seen && is_first(next)) go(next.message);
    }
  }

 private:
  bool is_first(const Waiting& each) const {
    return std::ranges::all_of(contention_.links_of_edge[each.edge],
                               [&](std::uint32_t link) { return lines_[link].front().message == each.message; });
  }

  const Contention& contention_;
  /// The first of a line moves, or waits for another link.
  std::vector<Line> lines_;
};

}  // namespace stave
