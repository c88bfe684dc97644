// Fetching memory ahead of its use, for walks that touch more places at once than a processor sees by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stave {

/// `address` need not be one that may be read. The empty statement is what a compiler may not leave out: GCC takes a
/// function that only prefetches for one without effect, and drops the calls of it.
inline void fetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

/// Of an element, which may be past the end, or of an array that has none.
template <class T>
void fetch(const std::vector<T>& array, std::size_t index) {
  fetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(array.data()) + index * sizeof(T)));
}

}  // namespace stave
