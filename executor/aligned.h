// AlignedBytes: zeroed memory on a cache-line boundary, so that a kernel takes the same path on every run.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace stave {

inline constexpr std::size_t kAlignment = 64;

constexpr std::size_t round_up(std::size_t n, std::size_t to = kAlignment) { return (n + to - 1) / to * to; }

class AlignedBytes {
 public:
  AlignedBytes() = default;
  /// Throws std::bad_alloc.
  explicit AlignedBytes(std::size_t size)
      : data_(size == 0 ? nullptr
                        : static_cast<std::byte*>(::operator new(round_up(size), std::align_val_t(kAlignment)))),
        size_(size) {
    if (size != 0) std::memset(data_.get(), 0, round_up(size));
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  float* floats() const { return reinterpret_cast<float*>(data_.get()); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(kAlignment)); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace stave
