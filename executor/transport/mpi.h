// Ranks over MPI, under mpirun or srun. All calls of the library are made by one thread of its own, so that large
// messages go on while the rank computes; the number of a channel is the tag.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "executor/transport/transport.h"

namespace stave {

/// The library, from its start to its end; once in a process.
class MpiWorld {
 public:
  /// Errors: a library that cannot be called from a second thread.
  static Result<std::unique_ptr<MpiWorld>> start();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }
  /// After a failure: the library is not ended, which would wait for messages that never come.
  void abandon() { is_abandoned_ = true; }
  /// Rank 0's text becomes that of all. At most 4096 bytes. Before any transport is connected.
  std::string broadcast(std::string text) const;
  /// With `rendezvous` a send ends only once its receive has begun.
  std::unique_ptr<Transport> connect(bool rendezvous) const;

 private:
  MpiWorld(std::uint32_t rank, std::uint32_t size) : rank_(rank), size_(size) {}
  std::uint32_t rank_;
  std::uint32_t size_;
  bool is_abandoned_ = false;
};

}  // namespace stave
