#include "scheduler/order/limits.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace stave {

PrefixMax::PrefixMax(std::uint32_t n) : leaves_(std::bit_ceil(std::max(n, 1u))), nodes_(2 * std::size_t(leaves_)) {}

void PrefixMax::add(std::uint32_t i, std::int64_t earlier, std::int64_t own) {
  std::uint32_t node = leaves_ + i;
  nodes_[node].largest += own;
  for (; node > 1; node /= 2) {
    Node& left = nodes_[node & ~1u];
    if (node % 2 == 1) {
      left.largest += earlier;
      left.added += earlier;
    }
    Node& parent = nodes_[node / 2];
    parent.largest = std::max(left.largest, nodes_[node | 1u].largest) + parent.added;
  }
}

std::int64_t PrefixMax::before(std::uint32_t i) const {
  if (i >= leaves_) return nodes_[1].largest;
  std::int64_t result = kLowest;
  for (std::uint32_t node = leaves_ + i; node > 1; node /= 2) {
    if (node % 2 == 1) result = std::max(result, nodes_[node - 1].largest);
    result += nodes_[node / 2].added;
  }
  return result;
}

Limit::Limit(std::int64_t most, std::vector<std::int64_t> rest, bool leave_room)
    : most_(most),
      rest_(std::move(rest)),
      open_(leave_room ? static_cast<std::uint32_t>(rest_.size()) : 0),
      keys_(leave_room ? static_cast<std::uint32_t>(rest_.size()) : 0),
      leave_room_(leave_room) {
  if (!leave_room) return;
  for (std::uint32_t m = 0; m < rest_.size(); ++m) {
    keys_.add(m, 0, rest_[m] > 0 ? rest_[m] : PrefixMax::kLowest);
    if (rest_[m] > 0) open_.insert(m);
  }
}

bool Limit::fits_with_room(std::uint32_t microbatch, std::int64_t size) const {
  if (size == 0) return true;
  if (held_ + size > most_) return false;
  const std::uint32_t oldest = open_.first();
  if (oldest == ReadySet::kNone || oldest == microbatch) return true;
  if (held_ + size + rest_[oldest] > most_) return false;
  return keys_.before(std::min(microbatch, static_cast<std::uint32_t>(rest_.size()))) + size <= most_;
}

void Limit::take(std::uint32_t microbatch, std::int64_t size) {
  if (size == 0) return;
  held_ += size;
  if (!leave_room_ || microbatch == kNobody) return;
  // What it holds more, it will take less: its own key stays.
  rest_[microbatch] -= size;
  keys_.add(microbatch, size, rest_[microbatch] > 0 ? 0 : PrefixMax::kLowest);
  if (rest_[microbatch] == 0) open_.erase(microbatch);
}

void Limit::untake(std::uint32_t microbatch, std::int64_t size) {
  if (size == 0) return;
  held_ -= size;
  if (!leave_room_ || microbatch == kNobody) return;
  if (rest_[microbatch] == 0) open_.insert(microbatch);
  keys_.add(microbatch, -size, rest_[microbatch] > 0 ? 0 : -PrefixMax::kLowest);
  rest_[microbatch] += size;
}

void Limit::give(std::uint32_t microbatch, std::int64_t size) {
  if (size == 0) return;
  held_ -= size;
  if (leave_room_ && microbatch != kNobody) keys_.add(microbatch, -size, -size);
}

}  // namespace stave
