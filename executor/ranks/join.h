// Join: makes this process one of the ranks of a run. It finds its place, comes together with the others, checks that
// they run the same, and connects the transport; at the end, well or not, it takes its leave.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "executor/control/launcher_variables.h"
#include "executor/ranks/ranks.h"
#include "executor/transport/transports.h"

namespace stave {

class MpiWorld;

class JoinedRank {
 public:
  /// `what` must be the same text on all ranks: the program, and all that decides how it runs. `rendezvous`, of MPI,
  /// makes a send wait for its receive. `place` is that of find_place(), or nothing under an MPI without variables.
  ///
  /// Errors: no place, a transport that this build lacks; as Control::join; ranks that differ in `what`; a transport
  /// that cannot connect.
  static Result<std::unique_ptr<JoinedRank>> join(TransportKind transport, const std::optional<RankPlace>& place,
                                                  bool rendezvous, const std::string& what);
  /// After a failure the others learn its cause.
  ~JoinedRank();

  const Ranks& ranks() const { return *ranks_; }
  std::uint64_t plan_hash() const { return hash_; }
  /// The run has failed here, of `cause`, unless another rank failed before. Returns the cause that all ranks print.
  std::string fail(const std::string& cause);
  /// All is done, and nothing is under way.
  void leave();

 private:
  JoinedRank() = default;
  Result<void> come_together(TransportKind transport, std::optional<RankPlace> place, bool rendezvous,
                             const std::string& what);

  std::uint64_t hash_ = 0;
  std::unique_ptr<MpiWorld> mpi_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Ranks> ranks_;
  bool has_failed_ = false;
};

}  // namespace stave
