#include "executor/control/launcher_variables.h"

#include <charconv>
#include <cstdlib>

namespace stave {

namespace {

/// Steps of Slurm and jobs of torchrun listen on a port of their own, from here on, below those that Linux gives to
/// connections (32768 on).
constexpr std::uint32_t kFirstPort = 20000;
constexpr std::uint32_t kPorts = 12000;
/// Steps of one job are so far apart, and of jobs that follow one another none meets the other's.
constexpr std::uint64_t kPortsBetweenSteps = 7919;
constexpr std::size_t kMostToken = 1024;

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  std::optional<std::string> text(const std::string& name) const { return variables_(name); }

  // A variable that must be there and be a number from `least` to `most`.
  Result<std::uint32_t> number(const std::string& name, std::uint32_t least, std::uint32_t most) const {
    const std::optional<std::string> value = text(name);
    if (!value) return Failure{"the variable " + name + " is missing, while others of its launcher are set"};
    std::uint32_t result = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
    if (error != std::errc() || end != value->data() + value->size() || result < least || result > most)
      return Failure{"the variable " + name + " is '" + value->substr(0, 80) + "', but must be a number from " +
                     std::to_string(least) + " to " + std::to_string(most)};
    return result;
  }

  // Rank, number of ranks, and both on the host, of one launcher; the last two are 0 where they are not set.
  Result<RankPlace> ranks(const std::string& launcher, const std::string& rank, const std::string& size,
                          const std::string& local_rank, const std::string& local_size) const {
    RankPlace place;
    place.launcher = launcher;
    const Result<std::uint32_t> all = number(size, 1, kMostRanks);
    if (!all) return all.failure();
    place.size = all.value();
    const Result<std::uint32_t> mine = number(rank, 0, place.size - 1);
    if (!mine) return mine.failure();
    place.rank = mine.value();
    if (text(local_size)) {
      const Result<std::uint32_t> here = number(local_size, 1, place.size);
      if (!here) return here.failure();
      place.local_size = here.value();
    }
    if (text(local_rank)) {
      const Result<std::uint32_t> here = number(local_rank, 0, (place.local_size > 0 ? place.local_size : place.size) - 1);
      if (!here) return here.failure();
      place.local_rank = here.value();
    }
    return place;
  }

  // Where rank 0 listens, if that is said.
  Result<void> master(RankPlace& place) const {
    if (const std::optional<std::string> host = text("MASTER_ADDR")) {
      if (host->empty()) return Failure{"the variable MASTER_ADDR is empty, but must be the address of rank 0"};
      place.host = *host;
      if (text("MASTER_PORT") || place.port == 0) {
        const Result<std::uint32_t> port = number("MASTER_PORT", 1, UINT16_MAX);
        if (!port) return port.failure();
        place.port = static_cast<std::uint16_t>(port.value());
      }
    }
    if (const std::optional<std::string> token = text("STAVE_TOKEN")) place.token = *token;
    if (place.token.size() > kMostToken)
      return Failure{"the variable STAVE_TOKEN has " + std::to_string(place.token.size()) + " characters; " +
                     std::to_string(kMostToken) + " is the most"};
    return {};
  }

 private:
  const Variables& variables_;
};

}  // namespace

Variables environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<std::optional<RankPlace>> find_place(const Variables& variables) {
  const Reader reader(variables);
  const auto finish = [&](Result<RankPlace> place) -> Result<std::optional<RankPlace>> {
    if (!place) return place.failure();
    if (Result<void> master = reader.master(*place); !master) return master.failure();
    return std::optional<RankPlace>(std::move(*place));
  };
  if (reader.text("RANK") || reader.text("WORLD_SIZE")) {
    Result<RankPlace> place = reader.ranks("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
    if (!place) return place.failure();
    if (const std::optional<std::string> run = reader.text("TORCHELASTIC_RUN_ID")) place->token = "torchrun " + *run;
    if (!reader.text("MASTER_ADDR")) return Failure{"RANK is set, but MASTER_ADDR, where rank 0 is found, is not"};
    if (const std::optional<std::string> listener = reader.text("STAVE_LISTENER")) {
      const Result<std::uint32_t> fd = reader.number("STAVE_LISTENER", 0, 1u << 20);
      if (!fd) return fd.failure();
      if (place->rank == 0) place->listener = static_cast<int>(fd.value());
    }
    Result<std::optional<RankPlace>> result = finish(std::move(place));
    // MASTER_PORT is then torchrun's own, on which it keeps a store for its ranks; no port becomes itself by this.
    if (result && reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True")
      (*result)->port = static_cast<std::uint16_t>(kFirstPort + (*result)->port % kPorts);
    return result;
  }
  if (reader.text("OMPI_COMM_WORLD_RANK")) {
    Result<RankPlace> place = reader.ranks("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                           "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
    if (const std::optional<std::string> job = reader.text("PMIX_NAMESPACE"); job && place)
      place->token = "mpirun " + *job;
    return finish(std::move(place));
  }
  if (reader.text("PMI_RANK") && !reader.text("SLURM_PROCID"))
    return finish(reader.ranks("mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"));
  // A shell inside an allocation has Slurm's variables too, but is no task of a step.
  if (!reader.text("SLURM_PROCID") || !reader.text("SLURM_STEP_ID")) return std::optional<RankPlace>();
  Result<RankPlace> place = reader.ranks("srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "");
  if (!place) return place.failure();
  const Result<std::uint32_t> job = reader.number("SLURM_JOB_ID", 0, UINT32_MAX);
  if (!job) return job.failure();
  const Result<std::uint32_t> step = reader.number("SLURM_STEP_ID", 0, UINT32_MAX);
  if (!step) return step.failure();
  // That srun's own host is rank 0's too is a guess, right inside a batch job.
  const std::optional<std::string> list = reader.text("SLURM_STEP_NODELIST");
  place->host = list ? first_host(*list) : reader.text("SLURM_LAUNCH_NODE_IPADDR").value_or("");
  if (place->host.empty())
    return Failure{list ? "the variable SLURM_STEP_NODELIST is '" + list->substr(0, 80) + "', which names no host"
                        : "the variable SLURM_STEP_NODELIST is missing, while others of its launcher are set"};
  const std::optional<std::string> tasks = reader.text("SLURM_STEP_TASKS_PER_NODE");
  if (tasks && reader.text("SLURM_NODEID")) {
    const Result<std::uint32_t> node = reader.number("SLURM_NODEID", 0, UINT32_MAX);
    if (!node) return node.failure();
    place->local_size = tasks_of_node(*tasks, node.value());
  }
  place->port = static_cast<std::uint16_t>(kFirstPort + (job.value() + kPortsBetweenSteps * step.value()) % kPorts);
  place->token = "slurm job " + std::to_string(job.value());
  return finish(std::move(place));
}

std::uint32_t tasks_of_node(const std::string& list, std::uint32_t node) {
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    std::uint32_t tasks = 0;
    std::uint32_t nodes = 1;
    auto read = std::from_chars(at, end, tasks);
    if (read.ec != std::errc()) return 0;
    at = read.ptr;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') {
      read = std::from_chars(at + 2, end, nodes);
      if (read.ec != std::errc() || read.ptr == end || *read.ptr != ')') return 0;
      at = read.ptr + 1;
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (at == end || *at++ != ',') return 0;
  }
  return 0;
}

std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of(",[");
  std::string result = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return result;
  const std::size_t last = list.find_first_of("-,]", end + 1);
  if (last == std::string::npos) return {};
  result += list.substr(end + 1, last - end - 1);
  // What stands behind the brackets belongs to every name.
  const std::size_t close = list.find(']', end);
  if (close == std::string::npos) return {};
  return result + list.substr(close + 1, list.find(',', close) - close - 1);
}

}  // namespace stave
