// Seeded numbers that are the same on every machine: a 64-bit mixer and a stream made from it.
#pragma once

#include <cstdint>
#include <string_view>

namespace stave {

/// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(mix(a) ^ b); }

/// FNV-1a.
constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

class RandomStream {
 public:
  explicit constexpr RandomStream(std::uint64_t seed) : state_(mix(seed)) {}
  constexpr std::uint64_t next() { return mix(state_++); }
  /// In [0, 1).
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// In 0 .. n - 1; n at least 1. The bias is below n / 2^64.
  constexpr std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

}  // namespace stave
