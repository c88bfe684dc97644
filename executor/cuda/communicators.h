// Communicators: those of NCCL that one rank takes part in, made and warmed up in one order that all ranks share. They do
// not block: who waits for them polls, and anyone may abort them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"
#include "executor/cuda/backend.h"
#include "executor/plan.h"
#include "executor/stage/stage.h"

/// NCCL's own name for a pointer to it is ncclComm_t.
struct ncclComm;

namespace stave {

/// Memory of the current GPU that communicators can register; plain memory of it where NCCL has none.
std::unique_ptr<CudaMemory> make_message_memory(cudaStream_t stream);

class Communicators {
 public:
  /// What NCCL and CUDA read from the environment once, at their first call, where the user has not set it: with `serial`
  /// transfers in the order of the host's calls; with `graph` no bookkeeping for what runs beside a graph, for nothing
  /// does.
  static void set_environment(bool serial, bool graph);
  /// Devices that sum gradients. Of one device there is nothing to connect.
  using Groups = std::vector<std::vector<DeviceId>>;
  /// How many a run has, over all ranks: with `serial` one for all messages, else one for every directed edge; and one
  /// for every group.
  static std::size_t count(const Program& program, const Groups& groups, bool serial);
  /// By which the ranks of one find each other.
  static constexpr std::size_t kIdBytes = 128;
  /// Those of so many. Throws std::runtime_error.
  static std::vector<std::byte> make_ids(std::size_t count);

  Communicators(const Program& program, const Groups& groups, bool serial, DeviceId rank);
  ~Communicators();
  Communicators(const Communicators&) = delete;

  /// Joins all others, edge by edge and group by group, and exchanges a few bytes at `scratch`, which are 0, over each on
  /// the stream given, of an edge that is not valid that of sums, so that no connection is made later. `wait` returns
  /// once what the stream has is done. Throws std::runtime_error.
  void connect(const std::vector<std::byte>& ids, std::byte* scratch, const std::function<cudaStream_t(EdgeId)>& stream,
               const std::function<void(cudaStream_t)>& wait);

  /// Lets NCCL move messages from and to this memory, of which may_register() holds, without copies of its own.
  /// What it refuses works as other memory does. After connect().
  void register_memory(std::span<std::byte> memory);

  /// Enqueue; throw std::runtime_error.
  void send(EdgeId edge, const std::byte* data, std::size_t bytes, cudaStream_t stream);
  void receive(EdgeId edge, std::byte* data, std::size_t bytes, cudaStream_t stream);
  void sum(std::size_t group, const GradientView& gradients, cudaStream_t stream);

  /// What a communicator has come to by itself; empty if nothing.
  std::string error();
  /// All at once, each from a thread of its own: they may depend on one another. Nothing may be enqueued any more.
  void abort_all();

 private:
  struct Member {
    ncclComm* communicator = nullptr;
    // Of this rank; -1 if it does not take part.
    int rank = -1;
    int ranks = 0;
    // What NCCL calls the memory registered, if any.
    void* registered = nullptr;
  };
  // `call` is given the communicator of `member`, unless all were aborted; waits until it is no longer in progress.
  // Throws if they were; `enqueue` if the call failed, too.
  template <class Call>
  std::string finish(const Member& member, const char* what, const Call& call);
  template <class Call>
  void enqueue(const Member& member, const char* what, const Call& call);
  Member& of(EdgeId edge) { return members_[serial_ ? 0 : edge.value]; }
  Member& of_group(std::size_t group) { return members_[first_group_ + group]; }
  int peer(EdgeId edge, bool source) const;

  const Program& program_;
  bool serial_;
  DeviceId rank_;
  // By edge, or one; then by group.
  std::vector<Member> members_;
  std::size_t first_group_;
  std::mutex mutex_;
  bool aborted_ = false;
};

}  // namespace stave
