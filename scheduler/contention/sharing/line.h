// Line: messages that want a link, in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stave {

struct Waiting {
  std::uint32_t message;
  std::uint32_t edge;
};

class Line {
 public:
  bool empty() const { return first_ == waiting_.size(); }
  const Waiting& front() const { return waiting_[first_]; }
  void push(Waiting each) { waiting_.push_back(each); }
  void pop() {
    if (++first_ < waiting_.size() && first_ < kLongest) return;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

 private:
  static constexpr std::size_t kLongest = 4096;
  std::vector<Waiting> waiting_;
  /// Those before it have been served.
  std::size_t first_ = 0;
};

}  // namespace stave
