// World: where the ranks of one communicator of the stand-in for NCCL meet, threads of one process or several processes: a
// file of shared memory named by the communicator's id, which goes when all have joined. What is in it moves bytes and
// counts them; what a transfer is, and when it is due, is nccl.cpp's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace stave::fake {

/// The part of a transfer that was moved, and of which rank: kept by whoever moves it on.
struct Moved {
  bool began = false;
  bool ended = false;
  std::size_t bytes = 0;
  /// Of a send: how far its channel must be read for it to have ended.
  std::uint64_t end = 0;
  /// Of a send, on the clock of the queues: when it was posted; once its receive has taken all, when that ended.
  std::uint64_t time_ns = 0;
};

enum class Step { Nothing, Moved, Mismatch };

class World {
 public:
  /// The same for all of one id. Null if the system refuses, or the others are of another number of ranks.
  static std::shared_ptr<World> open(const std::string& id, int ranks);
  ~World();
  World(const World&) = delete;

  /// False if that rank is taken.
  bool join(int rank);
  bool is_complete() const;
  int ranks() const { return ranks_; }

  /// To be asked for before one looks whether one can go on.
  std::uint32_t ticket() const;
  /// Until something has changed since, or 20 ms.
  void wait(std::uint32_t ticket);
  void notify();

  /// Moves a message on as far as it goes. A send has ended when its receive has taken all, or at once if the channel may
  /// hold so many bytes (FAKE_NCCL_BUFFER). `matched` is called when a receive has found its send, before data moves, with
  /// the bytes and when that was posted; it gives back when both end.
  using Matched = std::uint64_t (*)(std::size_t bytes, std::uint64_t posted_ns);
  Step send(int from, int to, const std::byte* data, std::size_t bytes, Moved& moved);
  Step receive(int from, int to, std::byte* data, std::size_t bytes, Moved& moved, Matched matched);

  /// Room for a part of a sum, of each rank, and what it can hold.
  static constexpr std::size_t kPart = std::size_t{1} << 14;
  struct Part {
    /// Parts of this rank that were put here, and of all others that were taken.
    std::atomic<std::uint64_t> put;
    std::atomic<std::uint64_t> taken;
    /// When this rank came to it.
    std::atomic<std::uint64_t> posted_ns;
    alignas(64) std::byte data[kPart];
  };
  Part& part(int rank);

 private:
  struct Head;
  struct Channel;
  World() = default;
  Channel& channel(int from, int to);
  std::byte* ring(Channel& channel);

  std::string path_;
  int ranks_ = 0;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::byte* memory_ = nullptr;
  Head* head_ = nullptr;
};

}  // namespace stave::fake
