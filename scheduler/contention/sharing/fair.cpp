#include "scheduler/contention/sharing/fair.h"

#include <algorithm>

namespace stave {

namespace {

// All shares of up to sixteen are whole: the least common multiple of 1 to 16. A share of more is rounded down.
constexpr Ticks kParts = 720720;

}  // namespace

Ticks Fair::rate_of(std::uint32_t edge) const {
  std::uint32_t most = 1;
  for (std::uint32_t link : contention_.links_of_edge[edge]) most = std::max(most, on_link_[link]);
  return std::max<Ticks>(1, kParts / most);
}

// The shares of all that take a link of `edge` change.
void Fair::change(std::uint32_t edge, int by, Ticks now) {
  for (std::uint32_t link : contention_.links_of_edge[edge]) on_link_[link] += by;
  for (Movement& each : moving_) {
    const Ticks rate = rate_of(each.edge);
    if (rate == each.rate) continue;
    each.left = std::max<Int128>(0, each.left - static_cast<Int128>(now - each.since) * each.rate);
    each.since = now;
    each.rate = rate;
    each.has_changed = true;
  }
}

void Fair::add(std::uint32_t message, std::uint32_t edge, Ticks length, Ticks now) {
  change(edge, 1, now);
  moving_.push_back({message, edge, static_cast<Int128>(length) * kParts, rate_of(edge), now, true});
}

void Fair::remove(std::uint32_t message, Ticks now) {
  const auto at = std::ranges::find(moving_, message, &Movement::message);
  const std::uint32_t edge = at->edge;
  moving_.erase(at);
  change(edge, -1, now);
}

}  // namespace stave
