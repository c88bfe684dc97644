// The one table of transports: how data goes from one device of a run to another.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace stave {

enum class TransportKind { Inproc, Gloo, Mpi, Local, Nccl };

struct TransportInfo {
  TransportKind kind = TransportKind::Inproc;
  std::string_view name;
  /// Between processes, each a rank with one device; and between the devices of one process.
  bool has_ranks = false;
  bool has_one_process = true;
  /// Of --backend cuda; the others are of cpu.
  bool is_of_gpus = false;
  /// Whether this build has it, and what it lacks if not.
  bool is_built = true;
  std::string_view lacks;
};

#ifdef STAVE_WITH_GLOO
inline constexpr bool kWithGloo = true;
#else
inline constexpr bool kWithGloo = false;
#endif
#ifdef STAVE_WITH_MPI
inline constexpr bool kWithMpi = true;
#else
inline constexpr bool kWithMpi = false;
#endif

inline constexpr std::array<TransportInfo, 5> kTransports = {{
    {TransportKind::Inproc, "inproc", false, true, false, true, ""},
    {TransportKind::Gloo, "gloo", true, false, false, kWithGloo, "Gloo (Debian's libgloo-dev)"},
    {TransportKind::Mpi, "mpi", true, false, false, kWithMpi, "MPI (Debian's libopenmpi-dev)"},
    // Whether they are there is known to the program that has CUDA's libraries.
    {TransportKind::Local, "local", false, true, true, true, ""},
    {TransportKind::Nccl, "nccl", true, true, true, true, ""},
}};

constexpr const TransportInfo& info_of(TransportKind kind) { return kTransports[static_cast<std::size_t>(kind)]; }

constexpr bool transports_stand_in_order() {
  for (std::size_t i = 0; i < kTransports.size(); ++i)
    if (kTransports[i].kind != static_cast<TransportKind>(i)) return false;
  return true;
}
static_assert(transports_stand_in_order(), "a row of kTransports stands in another place than its kind");

}  // namespace stave
