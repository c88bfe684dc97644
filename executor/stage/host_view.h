// HostView: what stages show of themselves (weights, gradients, state), where the host can read and write it: there
// itself, or a copy where it lies on a GPU.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "executor/aligned.h"
#include "executor/stage/stage.h"

namespace stave {

class HostView {
 public:
  /// Both must outlive it; nothing may use the pieces meanwhile. Throws std::bad_alloc, and as Workload::copy.
  HostView(const Workload& workload, std::vector<std::span<std::byte>> pieces)
      : workload_(workload), there_(std::move(pieces)), here_(there_) {
    if (workload.is_on_host()) return;
    for (std::size_t i = 0; i < there_.size(); ++i) {
      const AlignedBytes& copy = copies_.emplace_back(there_[i].size());
      workload.copy(copy.data(), there_[i].data(), there_[i].size());
      here_[i] = {copy.data(), there_[i].size()};
    }
  }

  const std::vector<std::span<std::byte>>& pieces() const { return here_; }
  /// What was written here is there too.
  void put_back() const {
    if (workload_.is_on_host()) return;
    for (std::size_t i = 0; i < there_.size(); ++i) workload_.copy(there_[i].data(), here_[i].data(), here_[i].size());
  }

 private:
  const Workload& workload_;
  std::vector<std::span<std::byte>> there_;
  std::vector<std::span<std::byte>> here_;
  std::vector<AlignedBytes> copies_;
};

}  // namespace stave
