#include "executor/control/place.h"

#include <charconv>
#include <cstdlib>

namespace stave {

namespace {

/// Slurm jobs listen on a port of their own, from here on.
constexpr std::uint32_t kFirstPort = 20000;
constexpr std::uint32_t kPorts = 20000;

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

  // Rank, number of ranks, and rank on the host, of one launcher; without the last, 0 where that is not set.
  Result<RankPlace> ranks(const std::string& launcher, const std::string& rank, const std::string& size,
                      const std::string& local) const {
    RankPlace place;
    place.launcher = launcher;
    const Result<std::uint32_t> all = number(size, 1, kMostRanks);
    if (!all) return all.failure();
    place.size = all.value();
    const Result<std::uint32_t> mine = number(rank, 0, place.size - 1);
    if (!mine) return mine.failure();
    place.rank = mine.value();
    if (!text(local)) return place;
    const Result<std::uint32_t> here = number(local, 0, place.size - 1);
    if (!here) return here.failure();
    place.local_rank = here.value();
    return place;
  }

  // Where rank 0 listens, if that is said.
  Result<void> master(RankPlace& place) const {
    if (const std::optional<std::string> host = text("MASTER_ADDR")) {
      place.host = *host;
      const Result<std::uint32_t> port = number("MASTER_PORT", 1, UINT16_MAX);
      if (!port) return port.failure();
      place.port = static_cast<std::uint16_t>(port.value());
    }
    if (const std::optional<std::string> token = text("STAVE_TOKEN")) place.token = *token;
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
    Result<RankPlace> place = reader.ranks("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK");
    if (!place) return place.failure();
    if (!reader.text("MASTER_ADDR")) return Failure{"RANK is set, but MASTER_ADDR, where rank 0 is found, is not"};
    if (const std::optional<std::string> listener = reader.text("STAVE_LISTENER")) {
      const Result<std::uint32_t> fd = reader.number("STAVE_LISTENER", 0, 1u << 20);
      if (!fd) return fd.failure();
      if (place->rank == 0) place->listener = static_cast<int>(fd.value());
    }
    return finish(std::move(place));
  }
  if (reader.text("OMPI_COMM_WORLD_RANK"))
    return finish(reader.ranks("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"));
  if (reader.text("PMI_RANK") && !reader.text("SLURM_PROCID"))
    return finish(reader.ranks("mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"));
  // A shell inside an allocation has Slurm's variables too, but is no task of a step.
  if (!reader.text("SLURM_PROCID") || !reader.text("SLURM_STEP_ID")) return std::optional<RankPlace>();
  Result<RankPlace> place = reader.ranks("srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID");
  if (!place) return place.failure();
  const Result<std::uint32_t> job = reader.number("SLURM_JOB_ID", 0, UINT32_MAX);
  if (!job) return job.failure();
  const std::optional<std::string> list = reader.text("SLURM_STEP_NODELIST");
  place->host = list ? first_host(*list) : std::string();
  if (place->host.empty()) return Failure{"the variable SLURM_STEP_NODELIST names no host"};
  place->port = static_cast<std::uint16_t>(kFirstPort + job.value() % kPorts);
  place->token = "slurm job " + std::to_string(job.value());
  return finish(std::move(place));
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
