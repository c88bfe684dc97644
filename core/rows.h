// Rows: lists of unlike length in one array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stave {

/// Rows of unlike length, packed: row i is items[first[i]] .. items[first[i + 1] - 1].
template <class T>
struct Rows {
  std::vector<std::uint32_t> first = {0};
  std::vector<T> items;

  std::size_t size() const { return first.size() - 1; }
  std::span<const T> operator[](std::size_t i) const {
    return std::span<const T>(items).subspan(first[i], first[i + 1] - first[i]);
  }
  void end_row() { first.push_back(static_cast<std::uint32_t>(items.size())); }
};

}  // namespace stave
