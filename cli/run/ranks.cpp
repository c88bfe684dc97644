#include "cli/run/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "executor/control/launch.h"

namespace stave {

std::vector<std::string> command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1) words.emplace_back(text.c_str() + at);
  return words;
}

Result<Role> find_role(const RunArguments& arguments) {
  Role role;
  const std::string name = !arguments.transport.empty() ? arguments.transport
                           : arguments.is_on_gpus()     ? (arguments.ranks > 0 ? "nccl" : "local")
                           : arguments.ranks > 0        ? "gloo"
                                                        : "inproc";
  const TransportInfo& info = *std::ranges::find(kTransports, name, &TransportInfo::name);
  role.transport = info.kind;
  if (info.is_of_gpus != arguments.is_on_gpus())
    return Failure{fmt::format("--transport {} is of --backend {}, not of {}", name, info.is_of_gpus ? "cuda" : "cpu",
                               arguments.backend)};
  if (!arguments.is_on_gpus() && (!arguments.graph.empty() || arguments.precision != "fp32"))
    return Failure{fmt::format("--{} is of --backend cuda", arguments.graph.empty() ? "precision" : "graph")};
  if (arguments.serial && role.transport != TransportKind::Nccl)
    return Failure{fmt::format("--serial is of --transport nccl, not of {}", name)};
  if (arguments.rendezvous && role.transport != TransportKind::Mpi)
    return Failure{fmt::format("--rendezvous is of --transport mpi, not of {}", name)};
  if (!info.has_ranks && arguments.transport.empty()) {
    const Result<std::optional<RankPlace>> place = find_place(environment());
    if (place && place.value() && place.value()->size > 1)
      return Failure{fmt::format("{} has started this as one of {} ranks: name their --transport, or {} for runs of their own",
                                 place.value()->launcher, place.value()->size, name)};
  }
  if (!info.has_ranks) {
    if (arguments.ranks > 0)
      return Failure{fmt::format("--ranks needs a transport between processes: --transport {} has none", name)};
    return role;
  }
  if (arguments.unchecked) return Failure{"--unchecked runs in one process: leave --ranks and --transport out"};
  Result<std::optional<RankPlace>> place = find_place(environment());
  if (!place) return place.failure();
  // One process is no rank of several, unless it must be.
  if (info.has_one_process && arguments.ranks == 0 && (!place.value() || place.value()->size == 1)) return role;
  role.is_rank = true;
  role.place = std::move(*place);
  role.launches = arguments.ranks > 0 && !role.place;
  if (role.launches && role.transport == TransportKind::Mpi)
    return Failure{fmt::format("--ranks starts ranks by itself; those of MPI are started by mpirun -n {} or srun -n {}",
                               arguments.ranks, arguments.ranks)};
  if (role.place && arguments.ranks > 0 && !environment()("STAVE_LAUNCHED"))
    return Failure{fmt::format("--ranks starts ranks itself, but {} has made this process rank {} of {}; leave one of both out",
                               role.place->launcher, role.place->rank, role.place->size)};
  if (role.launches && !arguments.schedule.words.empty() && arguments.schedule.words[0] == "-")
    return Failure{"--ranks: standard input can be read once only; name a file"};
  return role;
}

Exit launch(std::uint32_t ranks) {
  catch_interrupt();
  const Result<int> status = launch_ranks(ranks, command_line(), interrupt_signal);
  if (!status) return fail(status.failure().message);
  return static_cast<Exit>(status.value());
}

Result<std::unique_ptr<JoinedRank>> join(const Role& role, const RunArguments& arguments, const std::string& what) {
  return JoinedRank::join(role.transport, role.place, arguments.rendezvous, what);
}

}  // namespace stave
