// RankPlace: which of a run's ranks this process is, and where rank 0 is found; read from the variables that launchers set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"

namespace stave {

/// Most ranks of a run.
inline constexpr std::uint32_t kMostRanks = 4096;

struct RankPlace {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  /// Among the ranks of this host, if the launcher says it.
  std::optional<std::uint32_t> local_rank;
  /// How many ranks this host has; 0 if the launcher does not say.
  std::uint32_t local_size = 0;
  /// Where rank 0 listens; empty if the launcher does not say (mpirun).
  std::string host;
  std::uint16_t port = 0;
  /// What a rank must know to be let in.
  std::string token;
  /// Rank 0's listening socket, if whoever started it has made it already; -1 if not.
  int listener = -1;
  /// Who set the variables, for messages: "torchrun", "mpirun", "srun".
  std::string launcher;
};

/// Gives the value of a variable, or nothing.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// Those of this process.
Variables environment();

/// In this order: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT (torchrun, and stave's own); those of mpirun
/// (OMPI_COMM_WORLD_*); PMI_RANK and PMI_SIZE; those of Slurm. Nothing if there are none of them: one process.
///
/// Under Slurm rank 0 listens on its step's first host, on a port made of the numbers of job and step, unless
/// MASTER_ADDR and MASTER_PORT say something else. The token is STAVE_TOKEN; where it is not set, what the launcher calls
/// the job, which anyone on the cluster can know: it keeps jobs apart, not people.
///
/// Errors: a variable of a set that is missing, is no number, or a rank that is not below the number of ranks; a token
/// that is too long; each named with its value.
Result<std::optional<RankPlace>> find_place(const Variables& variables);

/// The first host of Slurm's list: "n[003-007,012],m1" is n003. Empty if it is none.
std::string first_host(const std::string& list);

/// Of Slurm's numbers of tasks by node, "2(x3),1", that of one node; 0 if it is not there.
std::uint32_t tasks_of_node(const std::string& list, std::uint32_t node);

}  // namespace stave
